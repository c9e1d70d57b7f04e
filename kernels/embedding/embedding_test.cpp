// The embedding of every backend: against PyTorch, finite differences and itself in 16 bits.
#include "base/philox.h"
#include "kernels/testing/differences.h"

namespace fettle::kernels::testing {
namespace {

struct Case {
  EmbeddingShape shape;
  std::int64_t samples = 1;
  std::vector<std::int32_t> tokens;
  Floats table, positions, dy;
};

struct Outcome {
  Floats y, dtable, dpositions;
};

Case golden_case(const Json& c) {
  Case input{{integer_of(c, "vocabulary"), integer_of(c, "length"), integer_of(c, "channels")},
             integer_of(c, "samples"),
             {},
             floats_of(c, "table"),
             floats_of(c, "positions"),
             floats_of(c, "dy")};
  for (const float token : floats_of(c, "tokens")) {
    input.tokens.push_back(static_cast<std::int32_t>(token));
  }
  return input;
}

Outcome run(EmbeddingOp& op, DataType type, const Case& c) {
  const Array table(type, c.table), positions(type, c.positions), dy(type, c.dy);
  Array y(type, std::ssize(c.dy));
  Outcome out{{}, Floats(c.table.size()), Floats(c.positions.size())};
  op.forward(c.samples, c.tokens.data(), table.data(), positions.data(), y.data());
  op.backward(c.samples, c.tokens.data(), dy.data(), out.dtable.data(), out.dpositions.data());
  out.y = y.floats();
  return out;
}

class Embedding : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<EmbeddingOp> make(const Case& c, DataType type = DataType::kFloat32) {
    return must(backend(GetParam())->embedding(c.shape, {c.samples, type}));
  }
};

TEST_P(Embedding, AgreesWithPyTorch) {
  for (const Json& golden : golden_cases("embedding")) {
    const Case c = golden_case(golden);
    const Outcome found = run(*make(c), DataType::kFloat32, c);
    expect_close(found.y, floats_of(golden, "y"), 1e-6, "y");
    expect_close(found.dtable, floats_of(golden, "dtable"), 1e-6, "dtable");
    expect_close(found.dpositions, floats_of(golden, "dpositions"), 1e-6, "dpositions");
  }
}

TEST_P(Embedding, GradientsAreTheDerivatives) {
  Case c = golden_case(golden_cases("embedding")[0]);
  auto op = make(c);
  const Outcome result = run(*op, DataType::kFloat32, c);
  const auto f = [&] { return dot(run(*op, DataType::kFloat32, c).y, c.dy); };
  expect_gradient(f, c.table.data(), result.dtable, 1.0F / 64, 1e-3, "dtable");
  expect_gradient(f, c.positions.data(), result.dpositions, 1.0F / 64, 1e-3, "dpositions");
}

TEST_P(Embedding, RoundsOnly16BitOutputs) {
  for (const DataType type : {DataType::kBFloat16, DataType::kFloat16}) {
    const Case c = golden_case(golden_cases("embedding")[1]);
    const Outcome found = run(*make(c, type), type, c);
    const Outcome expected = run(*make(c), DataType::kFloat32, c);
    expect_close(found.y, expected.y, 1e-2, "y");
    expect_close(found.dtable, expected.dtable, 1e-2, "dtable");
  }
}

// Scatter-adds of two halves equal the scatter-add of the whole, to the last bit.
TEST_P(Embedding, AccumulatesGradients) {
  const Case c = golden_case(golden_cases("embedding")[0]);
  auto op = make(c);
  const Outcome whole = run(*op, DataType::kFloat32, c);
  Floats dtable(c.table.size()), dpositions(c.positions.size());
  for (std::int64_t s = 0; s < c.samples; ++s) {
    op->backward(1, c.tokens.data() + s * c.shape.length,
                 c.dy.data() + s * c.shape.length * c.shape.channels, dtable.data(),
                 dpositions.data());
  }
  EXPECT_EQ(dtable, whole.dtable);
  EXPECT_EQ(dpositions, whole.dpositions);
}

// Makes texts that are half one token, in vocabularies of one token, of characters, of words, with
// channels that are, or are not, whole vectors.
Case text(std::int64_t vocabulary, std::int64_t channels, std::int64_t samples,
          std::int64_t length) {
  Case c{{vocabulary, length, channels}, samples, {}, {}, {}, {}};
  Random random(7);
  for (std::int64_t i = 0; i < samples * length; ++i) {
    const auto drawn =
        static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary)));
    c.tokens.push_back(random.below(2) == 0 ? static_cast<std::int32_t>(vocabulary / 2) : drawn);
  }
  c.table = random_floats(vocabulary * channels, 1);
  c.positions = random_floats(length * channels, 2);
  c.dy = random_floats(samples * length * channels, 3);
  return c;
}

TEST_P(Embedding, AgreesWithTheReferenceOnTexts) {
  for (const DataType type : {DataType::kFloat32, DataType::kBFloat16, DataType::kFloat16}) {
    for (const Case& c : {text(1, 3, 2, 65), text(65, 33, 7, 129), text(65, 40, 5, 256),
                          text(300, 1, 1, 31), text(50257, 8, 3, 333)}) {
      auto reference = must(backend("reference")->embedding(c.shape, {c.samples, type}));
      const Outcome found = run(*make(c, type), type, c);
      const Outcome expected = run(*reference, type, c);
      EXPECT_EQ(found.y, expected.y);
      expect_close(found.dtable, expected.dtable, 1e-6, "dtable");
      expect_close(found.dpositions, expected.dpositions, 1e-6, "dpositions");
    }
  }
}

TEST_P(Embedding, RefusesAnEmptyVocabulary) {
  const auto made = backend(GetParam())->embedding({0, 4, 2}, {1, DataType::kFloat32});
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("vocabulary is 0"));
}

INSTANTIATE_TEST_SUITE_P(, Embedding, ::testing::ValuesIn(backend_names()), backend_name_of);

}  // namespace
}  // namespace fettle::kernels::testing
