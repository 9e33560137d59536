// Manual pages, made from the help of the verbs.
#ifndef MUSTER_CLIENTS_CLI_MAN_PAGE_H_
#define MUSTER_CLIENTS_CLI_MAN_PAGE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace muster::cli {

// `muster help --man [VERB...]` prints the page of a verb, or of the program, and exits; `muster
// help --man-pages DIRECTORY` writes all of them, as muster.1, muster-submit.1 and so on. `words`:
// those behind "help". Returns the exit code.
int ManPages(const CLI::App& app, const std::vector<std::string>& words);

// The page in the language of man(7).
std::string ManPage(const CLI::App& app);

}  // namespace muster::cli

#endif  // MUSTER_CLIENTS_CLI_MAN_PAGE_H_
