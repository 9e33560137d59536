// Text from schedulers and programs on its way into protobuf strings.
//
// proto3 strings are UTF-8: a message with one foreign byte is refused by its receiver, and an
// event that can never be delivered would block every later one.
#ifndef MUSTER_AGENTS_CORE_CLEAN_TEXT_H_
#define MUSTER_AGENTS_CORE_CLEAN_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/cluster.pb.h"

namespace muster::agents {

// The limits of the contract for evidence details and failure messages.
inline constexpr size_t kMaxDetailBytes = 4096;
// The other texts are short by nature; this bounds them all the same.
inline constexpr size_t kMaxNameBytes = 1024;
// Bytes of a path, as Linux has it.
inline constexpr size_t kMaxPathBytes = 4096;

// The text with bytes that are not UTF-8 replaced by '?', cut at a character's end to at most
// `max_bytes`.
std::string CleanText(std::string_view text, size_t max_bytes);

// Cleans every text of a message that a backend may have filled with foreign bytes.
void CleanTexts(agent::v1::RunEvent* event);
void CleanTexts(v1::Inventory* inventory);
// Cleans every text of any message, also in messages and maps within it, to `max_bytes`.
void CleanAllTexts(google::protobuf::Message* message, size_t max_bytes);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_CLEAN_TEXT_H_
