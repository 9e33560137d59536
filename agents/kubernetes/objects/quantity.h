// Amounts as Kubernetes writes them: "500m", "16Gi", "1e3", "128974848", "1500Ki". Pure.
//
// Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.
#ifndef MUSTER_AGENTS_KUBERNETES_OBJECTS_QUANTITY_H_
#define MUSTER_AGENTS_KUBERNETES_OBJECTS_QUANTITY_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::kubernetes {

// In whole units and in thousandths of one, both rounded up, as Kubernetes does it, and cut off at
// the ends of the type. Nothing: it is no quantity.
std::optional<int64_t> ParseQuantity(std::string_view text);
std::optional<int64_t> ParseMilliQuantity(std::string_view text);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_OBJECTS_QUANTITY_H_
