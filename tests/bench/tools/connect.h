#ifndef MUSTER_TESTS_BENCH_TOOLS_CONNECT_H_
#define MUSTER_TESTS_BENCH_TOOLS_CONNECT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/core/broker_link.h"
#include "clients/cpp/client.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {

absl::StatusOr<std::unique_ptr<client::Client>> MakeClient(const Load& load);
// `tls_directory` has an agent's certificate; empty if there is none.
absl::StatusOr<std::unique_ptr<agents::Dialer>> MakeDialer(const Load& load,
                                                           const std::string& tls_directory = "");

}  // namespace muster::bench

#endif  // MUSTER_TESTS_BENCH_TOOLS_CONNECT_H_
