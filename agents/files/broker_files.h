// The broker's files, over a connection of their own: megabytes of them delay no cancel.
#ifndef MUSTER_AGENTS_FILES_BROKER_FILES_H_
#define MUSTER_AGENTS_FILES_BROKER_FILES_H_

#include <memory>
#include <string>

#include "agents/files/file_source.h"

namespace muster::uploads {

// `target` as gRPC takes it: client::ParseAddress makes it. Dials when it is first asked.
std::unique_ptr<FileSource> MakeBrokerFiles(const std::string& target);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_BROKER_FILES_H_
