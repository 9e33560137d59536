// run_files.sh, as the agent sends it to hosts.
#ifndef MUSTER_AGENTS_CORE_RUN_FILES_SCRIPT_H_
#define MUSTER_AGENTS_CORE_RUN_FILES_SCRIPT_H_

#include <string_view>

namespace muster::agents {

std::string_view RunFilesScript();

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_RUN_FILES_SCRIPT_H_
