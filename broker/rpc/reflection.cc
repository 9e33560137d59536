#include "broker/rpc/reflection.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "google/protobuf/descriptor.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"

namespace muster::broker {
namespace {

namespace wire = grpc::reflection::v1;

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

void SetError(grpc::StatusCode code, std::string message,
              wire::ServerReflectionResponse* response) {
  response->mutable_error_response()->set_error_code(code);
  response->mutable_error_response()->set_error_message(std::move(message));
}

// Adds the file and then all files that it needs, each once.
void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>* seen,
             wire::FileDescriptorResponse* response) {
  if (!seen->insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), seen, response);
}

void AnswerFile(const FileDescriptor* file, std::string_view kind, const std::string& name,
                wire::ServerReflectionResponse* response) {
  if (file == nullptr) {
    return SetError(grpc::StatusCode::NOT_FOUND,
                    fmt::format("the broker has no {} \"{}\"", kind, name), response);
  }
  std::set<const FileDescriptor*> seen;
  AddFile(*file, &seen, response->mutable_file_descriptor_response());
}

// Muster's messages have no extensions: proto3 allows them for options only.
void AnswerExtensions(const std::string& type, wire::ServerReflectionResponse* response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const google::protobuf::Descriptor* message = pool.FindMessageTypeByName(type);
  if (message == nullptr) {
    return SetError(grpc::StatusCode::NOT_FOUND,
                    fmt::format("the broker has no message \"{}\"", type), response);
  }
  std::vector<const google::protobuf::FieldDescriptor*> extensions;
  pool.FindAllExtensions(message, &extensions);
  wire::ExtensionNumberResponse& numbers = *response->mutable_all_extension_numbers_response();
  numbers.set_base_type_name(type);
  for (const auto* extension : extensions) numbers.add_extension_number(extension->number());
}

void AnswerExtension(const wire::ExtensionRequest& request,
                     wire::ServerReflectionResponse* response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const auto* message = pool.FindMessageTypeByName(request.containing_type());
  const auto* extension = message == nullptr
                              ? nullptr
                              : pool.FindExtensionByNumber(message, request.extension_number());
  AnswerFile(extension == nullptr ? nullptr : extension->file(), "extension of",
             request.containing_type(), response);
}

class ReflectionService final : public wire::ServerReflection::CallbackService {
 public:
  explicit ReflectionService(std::vector<std::string> services) : services_(std::move(services)) {
    // The linker leaves its description out unless it is used.
    services_.push_back(
        grpc::health::v1::HealthCheckRequest::descriptor()->file()->service(0)->full_name());
    services_.emplace_back(wire::ServerReflection::service_full_name());
  }

  grpc::ServerBidiReactor<wire::ServerReflectionRequest, wire::ServerReflectionResponse>*
  ServerReflectionInfo(grpc::CallbackServerContext*) override {
    return new Stream(this);
  }

 private:
  // Reads one request, answers it and reads the next one.
  class Stream final : public grpc::ServerBidiReactor<wire::ServerReflectionRequest,
                                                      wire::ServerReflectionResponse> {
   public:
    explicit Stream(const ReflectionService* service) : service_(*service) { StartRead(&request_); }

    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      response_.Clear();
      service_.Answer(request_, &response_);
      StartWrite(&response_);
    }

    void OnWriteDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      StartRead(&request_);
    }

    void OnDone() override { delete this; }

   private:
    const ReflectionService& service_;
    wire::ServerReflectionRequest request_;
    wire::ServerReflectionResponse response_;
  };

  void Answer(const wire::ServerReflectionRequest& request,
              wire::ServerReflectionResponse* response) const {
    using Request = wire::ServerReflectionRequest;
    const DescriptorPool& pool = *DescriptorPool::generated_pool();
    response->set_valid_host(request.host());
    *response->mutable_original_request() = request;
    switch (request.message_request_case()) {
      case Request::kFileByFilename:
        return AnswerFile(pool.FindFileByName(request.file_by_filename()), "file",
                          request.file_by_filename(), response);
      case Request::kFileContainingSymbol:
        return AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), "symbol",
                          request.file_containing_symbol(), response);
      case Request::kFileContainingExtension:
        return AnswerExtension(request.file_containing_extension(), response);
      case Request::kAllExtensionNumbersOfType:
        return AnswerExtensions(request.all_extension_numbers_of_type(), response);
      case Request::kListServices:
        for (const std::string& name : services_)
          response->mutable_list_services_response()->add_service()->set_name(name);
        return;
      case Request::MESSAGE_REQUEST_NOT_SET:
        break;
    }
    SetError(grpc::StatusCode::INVALID_ARGUMENT, "the request asks for nothing", response);
  }

  std::vector<std::string> services_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeReflectionService(std::vector<std::string> services) {
  return std::make_unique<ReflectionService>(std::move(services));
}

}  // namespace muster::broker
