// Explains why an image could not be had. Pure.
#ifndef MUSTER_AGENTS_MACHINES_IMAGE_TROUBLE_H_
#define MUSTER_AGENTS_MACHINES_IMAGE_TROUBLE_H_

#include <string_view>

#include "muster/v1/facts.pb.h"

namespace muster::machines {

struct ImageTrouble {
  bool is_passing = false;  // the registry's or the machine's doing: another run may have it
  v1::FailureCode code = v1::FAILURE_CODE_IMAGE_UNAVAILABLE;
};

// `words` are those of podman, docker, enroot or apptainer.
ImageTrouble ExplainImageTrouble(std::string_view words);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_IMAGE_TROUBLE_H_
