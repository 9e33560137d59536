// Overwrites what nobody may find in memory later.
#ifndef MUSTER_BROKER_SECRETS_WIPE_H_
#define MUSTER_BROKER_SECRETS_WIPE_H_

#include <string>

namespace muster::secrets {

// Overwrites the text with zeros, which no compiler leaves out, and empties it.
void Wipe(std::string* text);

}  // namespace muster::secrets

#endif  // MUSTER_BROKER_SECRETS_WIPE_H_
