// Reads the signals that users name, by Linux's numbers, which are alike on all of its machines but
// MIPS, Alpha and SPARC.
#ifndef MUSTER_PROTO_CONTRACT_SIGNAL_NUMBER_H_
#define MUSTER_PROTO_CONTRACT_SIGNAL_NUMBER_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace muster::contract {

// The last one that Linux has.
inline constexpr uint32_t kMaxSignal = 64;

// Reads "USR1", "SIGUSR1" or "10", names in any case. Nothing: it is no signal's name, and no
// number from 1 to kMaxSignal.
std::optional<uint32_t> SignalNumber(std::string_view text);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_SIGNAL_NUMBER_H_
