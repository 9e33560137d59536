#include "broker/rpc/machine_name.h"

#include <unistd.h>

namespace muster::broker {

std::string MachineName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

}  // namespace muster::broker
