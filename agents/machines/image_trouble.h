// Explains why an image could not be had. Pure.
#ifndef MUSTER_AGENTS_MACHINES_IMAGE_TROUBLE_H_
#define MUSTER_AGENTS_MACHINES_IMAGE_TROUBLE_H_

#include <string>
#include <string_view>

namespace muster::machines {

struct ImageTrouble {
  bool is_passing = false;  // the registry's or the machine's doing: another run may have it
  std::string remedy;
};

// `words`: those of podman, docker, enroot or apptainer.
ImageTrouble ExplainImageTrouble(std::string_view words);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_IMAGE_TROUBLE_H_
