#include "agents/kubernetes/api/yaml_text.h"

#include <yaml-cpp/yaml.h>

namespace muster::kubernetes {
namespace {

void Emit(const Json& value, YAML::Emitter* out) {
  if (value.is_object() && !value.empty()) {
    *out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      *out << YAML::Key << key << YAML::Value;
      Emit(member, out);
    }
    *out << YAML::EndMap;
  } else if (value.is_array() && !value.empty()) {
    *out << YAML::BeginSeq;
    for (const Json& element : value) Emit(element, out);
    *out << YAML::EndSeq;
  } else if (value.is_object()) {
    *out << YAML::Flow << YAML::BeginMap << YAML::EndMap;
  } else if (value.is_array()) {
    *out << YAML::Flow << YAML::BeginSeq << YAML::EndSeq;
  } else if (value.is_string()) {
    // Quoted, so that "yes" and "1" stay strings.
    *out << YAML::DoubleQuoted << value.get<std::string>();
  } else {
    *out << value.dump();
  }
}

}  // namespace

std::string YamlOf(const Json& object) {
  YAML::Emitter out;
  Emit(object, &out);
  return std::string(out.c_str(), out.size()) + "\n";
}

}  // namespace muster::kubernetes
