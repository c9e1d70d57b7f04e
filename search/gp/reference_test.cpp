// Likelihood and posterior against scikit-learn (tests/search/gp_reference.py) and finite
// differences.
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "base/test_paths.h"
#include "search/gp/process/likelihood.h"
#include "search/gp/process/posterior.h"
#include "search/testing/gaussian_process.h"
#include "search/testing/problems.h"

namespace fettle::search::gp {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd vector_of(const Json& json) {
  VectorXd out(static_cast<Index>(json.as_array().size()));
  for (Index i = 0; i < out.size(); ++i) {
    out[i] = json.as_array()[static_cast<std::size_t>(i)].as_double();
  }
  return out;
}

Inputs inputs_of(const Json& rows) {
  const auto n = static_cast<Index>(rows.as_array().size());
  Inputs out(n, static_cast<Index>(rows.as_array()[0].as_array().size()));
  for (Index i = 0; i < n; ++i) {
    out.at.row(i) = vector_of(rows.as_array()[static_cast<std::size_t>(i)]).transpose();
  }
  out.active.setOnes();
  return out;
}

struct Case {
  Axes axes;
  Inputs x;
  VectorXd y;
  Hyperparameters hyperparameters;
};

Case read_case(const Json& json) {
  Case out;
  out.x = inputs_of(*json.find("x"));
  out.y = vector_of(*json.find("y"));
  out.axes.list.resize(static_cast<std::size_t>(out.x.at.cols()));
  out.hyperparameters.log_lengths = vector_of(*json.find("lengths")).array().log();
  out.hyperparameters.log_noise = std::log(json.find("noise")->as_double());
  return out;
}

Json reference() {
  const auto text = read_file(source_path("search/testdata/gp_reference.json"));
  return *parse_json(text.value());
}

TEST(Likelihood, IsThatOfScikitLearn) {
  const Json cases = reference();
  for (const Json& json : cases.as_array()) {
    const Case c = read_case(json);
    const Likelihood likelihood(c.axes, c.x, c.y);
    const Likelihood::Value value =
        likelihood.marginal(c.hyperparameters, json.find("scale")->as_double());
    EXPECT_NEAR(value.log, json.find("log_likelihood")->as_double(), 1e-8);
    const VectorXd gradient = vector_of(*json.find("gradient"));
    ASSERT_EQ(value.gradient.size(), gradient.size());
    for (Index i = 0; i < gradient.size(); ++i) EXPECT_NEAR(value.gradient[i], gradient[i], 1e-8);
  }
}

TEST(Posterior, IsThatOfScikitLearn) {
  const Json cases = reference();
  for (const Json& json : cases.as_array()) {
    const Case c = read_case(json);
    Posterior posterior(c.axes, c.hyperparameters, c.x, c.y.size());
    posterior.set_targets(c.y);
    EXPECT_NEAR(posterior.scale(), json.find("scale")->as_double(), 1e-8);
    const Inputs queries = inputs_of(*json.find("queries"));
    const VectorXd mean = vector_of(*json.find("mean"));
    const VectorXd sd = vector_of(*json.find("sd"));
    for (Index i = 0; i < mean.size(); ++i) {
      const Posterior::Prediction at = posterior.predict(queries, i);
      EXPECT_NEAR(at.mean, mean[i], 1e-8);
      EXPECT_NEAR(at.sd, sd[i], 1e-8);
    }
  }
}

// A mixed, conditional data set with its targets.
struct Mixed {
  Space space = testing::mixed_space();
  Axes axes = axes_of(space);
  Inputs inputs;
  VectorXd targets;
  explicit Mixed(Random& random, Index n) : inputs(testing::draw_inputs(space, random, n)) {
    targets = (3 * inputs.at.col(0).array()).sin() + inputs.at.col(3).array();
    for (double& target : targets) target += 0.1 * random.normal();
    targets.array() -= targets.mean();
  }
};

TEST(Likelihood, GradientOfThePosteriorIsRight) {
  Random random(6);
  for (int round = 0; round < 5; ++round) {
    const Mixed data(random, 30);
    const Likelihood likelihood(data.axes, data.inputs, data.targets);
    const Hyperparameters h = testing::draw_hyperparameters(data.axes, random);
    const auto value = [&](const VectorXd& packed) {
      return likelihood.posterior(Hyperparameters::unpack(data.axes, packed)).log;
    };
    const VectorXd gradient = likelihood.posterior(h).gradient;
    const VectorXd expected = testing::differences(value, h.pack());
    for (Index i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(gradient[i], expected[i], 1e-6 * (1 + std::abs(expected[i]))) << i;
    }
  }
}

TEST(Likelihood, AFitEndsAtASmallGradientAndFindsTheParameters) {
  Random random(7);
  const Space space =
      Space::make({search::testing::real("x", 0, 1), search::testing::real("unused", 0, 1)})
          .value();
  const Axes axes = axes_of(space);
  const Inputs inputs = testing::draw_inputs(space, random, 60);
  VectorXd targets = (12 * inputs.at.col(0).array()).sin();
  for (double& target : targets) target += 0.1 * random.normal();
  const Likelihood likelihood(axes, inputs, targets);
  const Hyperparameters fitted =
      likelihood.fit({likelihood.prior_mode(0, false), likelihood.prior_mode(1.5, false)}, 200);
  EXPECT_LT(likelihood.posterior(fitted).gradient.cwiseAbs().maxCoeff(), 0.3);
  EXPECT_GT(fitted.log_lengths[1], fitted.log_lengths[0] + 1);
  const double noise = std::exp(fitted.log_noise) * likelihood.posterior(fitted).scale;
  EXPECT_NEAR(std::sqrt(noise), 0.1, 0.03);
}

TEST(Posterior, RowByRowIsTheSameAsAtOnce) {
  Random random(8);
  const Mixed data(random, 40);
  const Hyperparameters h = testing::draw_hyperparameters(data.axes, random);
  Posterior at_once(data.axes, h, data.inputs, 40);
  Inputs first(10, data.inputs.at.cols());
  for (Index i = 0; i < 10; ++i) first.copy(i, data.inputs, i);
  Posterior grown(data.axes, h, first, 48);
  for (Index i = 10; i < 40; ++i) grown.append(data.inputs, i);
  at_once.set_targets(data.targets);
  grown.set_targets(data.targets);
  const Inputs queries = testing::draw_inputs(data.space, random, 20);
  for (Index i = 0; i < 20; ++i) {
    const Posterior::Prediction a = at_once.predict(queries, i);
    const Posterior::Prediction b = grown.predict(queries, i);
    EXPECT_NEAR(a.mean, b.mean, 1e-10);
    EXPECT_NEAR(a.sd, b.sd, 1e-10);
  }
}

TEST(Posterior, PendingRowsNarrowTheVarianceAndLeaveTheMean) {
  Random random(9);
  const Mixed data(random, 20);
  Posterior posterior(data.axes, testing::draw_hyperparameters(data.axes, random), data.inputs, 24);
  posterior.set_targets(data.targets);
  const Inputs pending = testing::draw_inputs(data.space, random, 3);
  const Posterior::Prediction before = posterior.predict(pending, 0);
  posterior.append(pending, 0);
  const Posterior::Prediction after = posterior.predict(pending, 0);
  EXPECT_NEAR(before.mean, after.mean, 1e-12);
  EXPECT_LT(after.sd, 0.5 * before.sd);
  posterior.append(pending, 1);
  posterior.truncate(20);
  EXPECT_EQ(posterior.predict(pending, 0).sd, before.sd);  // bit by bit
}

TEST(Posterior, SlopesAreRight) {
  Random random(10);
  for (int round = 0; round < 10; ++round) {
    const Mixed data(random, 15);
    Posterior posterior(data.axes, testing::draw_hyperparameters(data.axes, random), data.inputs,
                        16);
    posterior.set_targets(data.targets);
    const Inputs at = testing::draw_inputs(data.space, random, 1);
    posterior.append(testing::draw_inputs(data.space, random, 1), 0);
    const Posterior::Prediction prediction = posterior.predict(at, 0);
    const auto moved = [&](const VectorXd& x) {
      Inputs there = at;
      there.at.row(0) = x.transpose();
      return posterior.predict_without_slopes(there, 0);
    };
    const VectorXd x = at.at.row(0).transpose();
    const VectorXd mean =
        testing::differences([&](const VectorXd& place) { return moved(place).mean; }, x);
    const VectorXd sd =
        testing::differences([&](const VectorXd& place) { return moved(place).sd; }, x);
    for (Index i = 0; i < x.size(); ++i) {
      if (data.axes.list[static_cast<std::size_t>(i)].categorical) continue;
      EXPECT_NEAR(prediction.mean_slope[i], mean[i], 1e-6);
      EXPECT_NEAR(prediction.sd_slope[i], sd[i], 1e-6);
    }
  }
}

TEST(Pool, AgreesWithThePosteriorAsRowsComeAndGo) {
  Random random(11);
  const Mixed data(random, 25);
  Posterior posterior(data.axes, testing::draw_hyperparameters(data.axes, random), data.inputs, 40);
  posterior.set_targets(data.targets);
  const Inputs candidates = testing::draw_inputs(data.space, random, 30);
  Pool pool(posterior, candidates);
  const Inputs pending = testing::draw_inputs(data.space, random, 8);
  for (const Index rows : {0, 3, 8, 2, 5, 0}) {
    posterior.truncate(25 + rows);
    pool.update();
    while (posterior.rows() < 25 + rows) posterior.append(pending, posterior.rows() - 25);
    pool.update();
    const VectorXd sd = pool.sd();
    for (Index i = 0; i < 30; ++i) {
      const Posterior::Prediction at = posterior.predict(candidates, i);
      EXPECT_NEAR(pool.mean()[i], at.mean, 1e-10);
      EXPECT_NEAR(sd[i], at.sd, 1e-8);
    }
  }
}

}  // namespace
}  // namespace fettle::search::gp
