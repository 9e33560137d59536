// Signs what is sent, as receivers verify it. Pure; any thread.
#ifndef MUSTER_BROKER_NOTIFY_SIGNATURE_H_
#define MUSTER_BROKER_NOTIFY_SIGNATURE_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace muster::notify {

// Returns "t=SECONDS,v1=HEX": the time, and the HMAC-SHA-256 by the secret of "SECONDS.BODY". The
// time is signed, too, so that a receiver may refuse what somebody kept and sends again.
std::string Signature(std::string_view secret, absl::Time now, std::string_view body);

}  // namespace muster::notify

#endif  // MUSTER_BROKER_NOTIFY_SIGNATURE_H_
