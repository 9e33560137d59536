// Names, labels and paths as the API of Kubernetes takes them.
//
// Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and .../labels/.
#ifndef MUSTER_PROTO_CONTRACT_KUBERNETES_NAMES_H_
#define MUSTER_PROTO_CONTRACT_KUBERNETES_NAMES_H_

#include <string_view>

namespace muster::contract {

// A label has 1 to 63 of a-z, 0-9 and '-', and begins and ends with a letter or digit (RFC 1123).
bool IsDnsLabel(std::string_view name);
// Tells whether the name is a row of such labels with dots between them, up to 253 bytes (RFC 1123
// subdomain).
bool IsDnsSubdomain(std::string_view name);
// Tells whether the name is 1 to 63 letters, digits, '-', '_' and '.', beginning and ending with a
// letter or digit, perhaps behind "PREFIX/", a subdomain.
bool IsLabelKey(std::string_view key);
// Empty, or what may be behind a key's prefix.
bool IsLabelValue(std::string_view value);
// Returns whether a key belongs to Muster or to Kubernetes: its prefix is muster.dev, kubernetes.io
// or k8s.io, or ends in one of them.
bool IsReservedLabelKey(std::string_view key);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_KUBERNETES_NAMES_H_
