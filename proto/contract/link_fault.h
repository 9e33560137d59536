// A fault of a link in a tree of files, in words.
#ifndef MUSTER_PROTO_CONTRACT_LINK_FAULT_H_
#define MUSTER_PROTO_CONTRACT_LINK_FAULT_H_

#include <string>
#include <string_view>

namespace muster::contract {

struct LinkFault {
  std::string_view what = {};    // "is a link with an absolute target"; empty: it has none
  std::string_view remedy = {};  // "use a relative one"; empty: none is known

  // Returns both in one.
  std::string Text() const;
};

// Finds what is wrong with where a link at that path leads, whatever else is there.
LinkFault FaultOfLink(std::string_view path, std::string_view target);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_LINK_FAULT_H_
