// A part of job specs, as a field mask names it.
#ifndef MUSTER_PROTO_CONTRACT_SPEC_MASK_H_
#define MUSTER_PROTO_CONTRACT_SPEC_MASK_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "google/protobuf/field_mask.pb.h"

namespace muster::contract {

// A mask has room for more paths than a spec has fields that people ask for.
inline constexpr int kMaxMaskPaths = 100;

class SpecMask {
 public:
  // INVALID_ARGUMENT names the field `spec_mask` and the first path that is none of JobSpec: a path
  // leads through single messages, not into lists, and may end with a key of a map of texts:
  // "env.HOME".
  static absl::StatusOr<SpecMask> Parse(const google::protobuf::FieldMask& mask);

  // Returns whether the field of JobSpec of that number is in it as a whole.
  bool TakesWhole(int field) const;
  // Returns the part of a spec, both as they are serialised. Nothing: the bytes are no message.
  std::optional<std::string> Cut(std::string_view spec) const;

 private:
  // Fields of a message by number, or keys of a map; a node without either is taken whole.
  struct Node {
    std::map<int, Node> fields;
    std::set<std::string, std::less<>> keys;

    bool IsWhole() const { return fields.empty() && keys.empty(); }
  };
  // False: there is no such path.
  bool Add(std::string_view path);
  static bool CutMessage(std::string_view bytes, const Node& node, std::string* out);

  Node root_;
};

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SPEC_MASK_H_
