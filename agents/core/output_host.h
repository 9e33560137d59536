// The host that has what the runs of a backend leave: the backend's own, or this machine.
#ifndef MUSTER_AGENTS_CORE_OUTPUT_HOST_H_
#define MUSTER_AGENTS_CORE_OUTPUT_HOST_H_

#include "agents/core/backend.h"
#include "agents/hosts/host.h"
#include "agents/hosts/local_host.h"

namespace muster::agents {

class OutputHost {
 public:
  // The backend outlives it.
  explicit OutputHost(Backend* backend) : of_backend_(backend->capabilities().output_host) {}
  OutputHost(const OutputHost&) = delete;
  OutputHost& operator=(const OutputHost&) = delete;

  hosts::Host& get() { return of_backend_ == nullptr ? local_ : *of_backend_; }

 private:
  hosts::Host* const of_backend_;
  hosts::LocalHost local_;
};

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_OUTPUT_HOST_H_
