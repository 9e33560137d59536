// Finds the variables of a shell that should not leave its machine unasked. Pure.
#ifndef MUSTER_CLIENTS_CPP_SLURM_CREDENTIALS_H_
#define MUSTER_CLIENTS_CPP_SLURM_CREDENTIALS_H_

#include <string>
#include <string_view>
#include <vector>

namespace muster::client::slurm {

// Returns the variables that stay behind unless a user's configuration says otherwise: doors to the
// session's agents and tickets.
std::vector<std::string> DefaultLeaveBehind();

// Returns whether the list has the name, or the beginning of it with a '*' behind.
bool IsListed(std::string_view name, const std::vector<std::string>& list);

// Returns whether the variable is a credential by its name (a word of it is TOKEN, SECRET,
// PASSWORD, KEY or the like) or by its value (a URL with a password, a private key).
bool LooksLikeCredential(std::string_view name, std::string_view value);

}  // namespace muster::client::slurm

#endif  // MUSTER_CLIENTS_CPP_SLURM_CREDENTIALS_H_
