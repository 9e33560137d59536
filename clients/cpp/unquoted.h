// Shell text without what is quoted in it. Private to the client library. Pure.
#ifndef MUSTER_CLIENTS_CPP_UNQUOTED_H_
#define MUSTER_CLIENTS_CPP_UNQUOTED_H_

#include <string>
#include <string_view>

namespace muster::client {

// Returns the words of a script that no quotes protect: without comments and here-documents, and
// with an underscore in place of each quoted text. A command in "$(...)" is not quoted. It is no
// shell's parser: where quotes do not match, the rest of the script counts as quoted.
std::string Unquoted(std::string_view script);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_UNQUOTED_H_
