// This machine as the user of a run sees it.
#ifndef MUSTER_AGENTS_MACHINES_USER_HOST_H_
#define MUSTER_AGENTS_MACHINES_USER_HOST_H_

#include <memory>

#include "agents/hosts/local_host.h"
#include "agents/machines/run_user.h"
#include "agents/users/run_as_host.h"

namespace muster::machines {

class UserHost final : public users::RunAsHost {
 public:
  explicit UserHost(const RunUser& user)
      : RunAsHost(std::make_unique<hosts::LocalHost>(), user.helper, user.name) {}
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_USER_HOST_H_
