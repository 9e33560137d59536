#include "broker/http/methods.h"

#include <fmt/format.h>
#include <google/protobuf/descriptor.h>

#include "contract/text.h"

namespace muster::http {

Methods::Methods(const std::vector<std::string>& services) {
  for (const std::string& name : services) {
    const google::protobuf::ServiceDescriptor* const service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    if (service == nullptr) continue;
    for (int i = 0; i < service->method_count(); ++i) {
      const google::protobuf::MethodDescriptor& method = *service->method(i);
      std::string path = fmt::format("/{}/{}", name, method.name());
      by_path_.emplace(path, Method{.path = path,
                                    .input = method.input_type()->full_name(),
                                    .output = method.output_type()->full_name(),
                                    .client_streams = method.client_streaming(),
                                    .server_streams = method.server_streaming()});
    }
  }
}

const Method* Methods::Find(std::string_view path) const {
  const auto found = by_path_.find(ToAbsl(path));
  return found == by_path_.end() ? nullptr : &found->second;
}

}  // namespace muster::http
