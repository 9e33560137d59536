// The methods that HTTP reaches, found by their paths. Read-only once it is made; any thread.
#ifndef MUSTER_BROKER_HTTP_METHODS_H_
#define MUSTER_BROKER_HTTP_METHODS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace muster::http {

struct Method {
  std::string path;    // "/muster.v1.JobsService/GetJob"
  std::string input;   // the full name of the request
  std::string output;  // of the answer
  bool client_streams = false;
  bool server_streams = false;

  bool IsUnary() const { return !client_streams && !server_streams; }
};

class Methods {
 public:
  // `services` are full names of services that this program has.
  explicit Methods(const std::vector<std::string>& services);

  // Returns null if there is none.
  const Method* Find(std::string_view path) const;

 private:
  absl::flat_hash_map<std::string, Method> by_path_;
};

}  // namespace muster::http

#endif  // MUSTER_BROKER_HTTP_METHODS_H_
