#include "api/trainer/trainer_json.h"

#include <utility>

#include "api/fields/field_reader.h"
#include "api/fields/field_setter.h"
#include "api/fields/field_writer.h"
#include "api/trainer/check_trainer.h"
#include "api/trainer/trainer_fields.h"

namespace fettle::api {

Result<TrainerConfig> read_trainer_config(const Json& document) {
  TrainerConfig out;
  FieldErrors errors;
  const FieldPath root;
  read_struct(document, root, out, errors);
  if (errors.empty()) check_trainer(out, root, errors);
  if (!errors.empty()) return invalid(to_string(std::move(errors).take()));
  return out;
}

Json write_trainer_config(const TrainerConfig& config) { return write_struct(config); }

Status set_trainer_field(TrainerConfig& config, std::string_view path, const Json& value) {
  FieldErrors errors;
  const FieldPath root;
  const FieldRules rules;
  set_value(SetContext{path, value, root, rules, errors}, config);
  if (!errors.empty()) return invalid(to_string(std::move(errors).take()));
  return success();
}

}  // namespace fettle::api
