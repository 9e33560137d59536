// Objects as people read them.
#ifndef MUSTER_AGENTS_KUBERNETES_API_YAML_TEXT_H_
#define MUSTER_AGENTS_KUBERNETES_API_YAML_TEXT_H_

#include <string>

#include "agents/kubernetes/api/json_fields.h"

namespace muster::kubernetes {

// In block style, as kubectl takes it.
std::string YamlOf(const Json& object);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_API_YAML_TEXT_H_
