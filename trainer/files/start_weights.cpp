#include "trainer/files/start_weights.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "trainer/data/bytes.h"
#include "trainer/files/named_weights.h"
#include "trainer/files/safetensors.h"
#include "trainer/files/tensor_names.h"

namespace fettle::trainer {
namespace {

using Names = std::vector<std::string>;

// "a, b, c and 59 more".
std::string some_of(const Names& names) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

// Whether `entry` is the name, or its beginning up to a dot.
bool names_it(const std::string& entry, const std::string& name) {
  return name.starts_with(entry) && (name.size() == entry.size() || name[entry.size()] == '.');
}

// "layers.7", the last layer with a matrix of its own. Errors: the logits share the embedding's.
Result<std::string> head_of(const NetworkPlan& plan) {
  for (std::size_t i = plan.layers.size(); i-- > 0;) {
    const LayerPlan& layer = plan.layers[i];
    if (layer.shared.count > 0) {
      return invalid("new: head is the embedding's matrix in this model, so it has no own tensors");
    }
    if (layer.weights.count > 0 && layer.weights.offset < plan.decayed) {
      return "layers." + std::to_string(layer.index);
    }
  }
  return invalid("new: the model has no head");
}

class StartReader {
 public:
  StartReader(const SafetensorsFile& file, const NetworkPlan& plan, InitialValues& values)
      : file_(file), plan_(plan), weights_(named_weights(plan)), values_(values) {}

  Status run(const api::StartConfig& start) {
    FETTLE_ASSIGN(names_, names_in_file(file_, start.names, weights_));
    FETTLE_TRY(mark_fresh(start.fresh));
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (!fresh_.contains(i)) FETTLE_TRY(load(i));
    }
    return success();
  }

  // "61 tensors, 2 new (a, b), 1 of the file not used (c)".
  std::string summary() const {
    std::string text = std::to_string(weights_.size() - fresh_.size()) + " tensors";
    Names fresh;
    for (const std::size_t i : fresh_) fresh.push_back(weights_[i].name);
    if (!fresh.empty()) {
      text += ", " + std::to_string(fresh.size()) + " new (" + some_of(fresh) + ")";
    }
    const Names unused = unused_names();
    if (unused.empty()) return text;
    return text + ", " + std::to_string(unused.size()) + " of the file not used (" +
           some_of(unused) + ")";
  }

 private:
  Status mark_fresh(const Names& entries) {
    for (std::string entry : entries) {
      if (entry == "head") {
        FETTLE_ASSIGN(entry, head_of(plan_));
      }
      bool found = false;
      for (std::size_t i = 0; i < weights_.size(); ++i) {
        if (!names_it(entry, weights_[i].name) && !names_it(entry, names_[i].name)) continue;
        fresh_.insert(i);
        found = true;
      }
      if (found) continue;
      return invalid("new names " + entry + ", which the model lacks; its tensors are " +
                     weights_.front().name + " to " + weights_.back().name);
    }
    return success();
  }

  Status load(std::size_t i) {
    const NamedWeight& weight = weights_[i];
    const FileTensor& there = names_[i];
    const SafetensorsFile::Entry* const entry = file_.find(there.name);
    if (entry == nullptr) return missing(i);
    std::vector<std::int64_t> shape = weight.shape;
    if (there.transposed) std::ranges::reverse(shape);
    const bool longer = there.may_be_longer && entry->shape.size() == shape.size() &&
                        entry->shape.front() > shape.front();
    if (longer) shape.front() = entry->shape.front();
    auto read = file_.values(there.name, shape);
    if (!read.ok()) return Error(read.error());
    std::vector<float> values = std::move(read).value();
    if (there.transposed) values = transposed(values, weight.shape);
    values.resize(static_cast<std::size_t>(weight.block.count));
    place_values(weight, values, weight.of_statistics ? values_.statistics : values_.weights);
    return success();
  }

  // From [inputs, outputs] to `shape`.
  static std::vector<float> transposed(const std::vector<float>& from,
                                       const std::vector<std::int64_t>& shape) {
    const auto outputs = static_cast<std::size_t>(shape[0]);
    const auto inputs = static_cast<std::size_t>(shape[1]);
    std::vector<float> to(from.size());
    for (std::size_t out = 0; out < outputs; ++out) {
      for (std::size_t in = 0; in < inputs; ++in) to[out * inputs + in] = from[in * outputs + out];
    }
    return to;
  }

  Error missing(std::size_t i) const {
    const std::string& ours = weights_[i].name;
    const std::string& theirs = names_[i].name;
    Names all;
    for (const SafetensorsFile::Entry& entry : file_.entries()) all.push_back(entry.name);
    return invalid("lacks the tensor " + theirs + (ours == theirs ? "" : " (" + ours + ")") +
                   "; name it in model.from.new to keep its initial values. The file has " +
                   (all.empty() ? "no tensors" : some_of(all)));
  }

  Names unused_names() const {
    std::set<std::string> used;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!fresh_.contains(i)) used.insert(names_[i].name);
    }
    Names unused;
    for (const SafetensorsFile::Entry& entry : file_.entries()) {
      if (!used.contains(entry.name) && !is_spare_tensor(entry.name)) unused.push_back(entry.name);
    }
    return unused;
  }

  const SafetensorsFile& file_;
  const NetworkPlan& plan_;
  const std::vector<NamedWeight> weights_;
  InitialValues& values_;
  std::vector<FileTensor> names_;  // by index into weights_
  std::set<std::size_t> fresh_;    // indices into weights_
};

}  // namespace

Result<std::string> load_start_weights(const api::StartConfig& start, const NetworkPlan& plan,
                                       InitialValues& values) {
  FETTLE_ASSIGN(const MappedFile mapped, MappedFile::open(start.file));
  FETTLE_ASSIGN(const SafetensorsFile file, SafetensorsFile::parse(mapped.bytes(), start.file));
  StartReader reader(file, plan, values);
  if (Status read = reader.run(start); !read.ok()) return Error(read.error()).in(start.file);
  if (const std::string change = mapped.change(); !change.empty()) {
    return io_error(start.file + " " + change + " while it was read; start again");
  }
  return "starts from " + start.file + ": " + reader.summary();
}

}  // namespace fettle::trainer
