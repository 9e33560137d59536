// Images that cannot be had, in the words of the tools.
#include "agents/machines/image_trouble.h"

#include "absl/time/clock.h"
#include "agents/machines/verdict.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::machines {
namespace {

using ::testing::HasSubstr;

// The words of podman 4.3 and docker 24, enroot 3.4, apptainer 1.1.
constexpr const char* kPassing[] = {
    "Error: initializing source docker://debian:12: pinging container registry "
    "registry-1.docker.io: Get \"https://registry-1.docker.io/v2/\": dial tcp: lookup "
    "registry-1.docker.io: no such host",
    "Error: initializing source docker://a.lab/b:1: pinging container registry a.lab: Get "
    "\"https://a.lab/v2/\": dial tcp: lookup a.lab on 10.0.0.1:53: server misbehaving",
    "Error: initializing source docker://a.lab/b:1: pinging container registry a.lab: Get "
    "\"https://a.lab/v2/\": dial tcp 10.0.0.9:443: i/o timeout",
    "Error: initializing source docker://a.lab/b:1: pinging container registry a.lab: Get "
    "\"https://a.lab/v2/\": dial tcp 10.0.0.9:443: connect: connection refused",
    "Error response from daemon: Get \"https://a.lab/v2/\": net/http: TLS handshake timeout",
    "Error response from daemon: Get \"https://a.lab/v2/\": net/http: request canceled while "
    "waiting for connection (Client.Timeout exceeded while awaiting headers)",
    "Error: initializing source docker://a.lab/b:1: reading manifest 1 in a.lab/b: received "
    "unexpected HTTP status: 503 Service Unavailable",
    "Error response from daemon: received unexpected HTTP status: 502 Bad Gateway",
    "Error: reading blob sha256:00: Get \"https://a.lab/v2/b/blobs/sha256:00\": EOF",
    "Error response from daemon: toomanyrequests: You have reached your pull rate limit. You may "
    "increase the limit by authenticating and upgrading",
    "Error: initializing source docker://b:1: reading manifest 1 in docker.io/library/b: "
    "toomanyrequests: You have reached your unauthenticated pull rate limit.",
    "curl: (6) Could not resolve host: a.lab",
    "[ERROR] URL https://a.lab/v2/b/manifests/1 returned error code: 503",
    "FATAL:   While making image from oci registry: error fetching image to cache: failed to get "
    "checksum for docker://a.lab/b:1: pinging container registry a.lab: Get "
    "\"https://a.lab/v2/\": dial tcp 10.0.0.9:443: connect: no route to host",
    "Error: copying system image from manifest list: writing blob: storing blob to file "
    "\"/var/tmp/storage1/1\": write /var/tmp/storage1/1: no space left on device",
};
constexpr const char* kFinal[] = {
    "Error: initializing source docker://a.lab/b:2: reading manifest 2 in a.lab/b: manifest "
    "unknown: manifest unknown",
    "Error: initializing source docker://b:1: reading manifest 1 in docker.io/library/b: requested "
    "access to the resource is denied",
    "Error: initializing source docker://a.lab/b:1: unable to retrieve auth token: invalid "
    "username/password: unauthorized: authentication required",
    "Error response from daemon: pull access denied for b, repository does not exist or may "
    "require 'docker login': denied: requested access to the resource is denied",
    "Error response from daemon: manifest for a.lab/b:2 not found: manifest unknown: manifest "
    "unknown",
    "[ERROR] URL https://a.lab/v2/b/manifests/2 returned error code: 404 Not Found",
    "Error: short-name \"b\" did not resolve to an alias and no unqualified-search registries are "
    "defined in \"/etc/containers/registries.conf\"",
    "Error response from daemon: manifest for a.lab/toomanyrequests:1 not found: manifest unknown",
    // One registry of two has said so.
    "Error: 2 errors occurred while pulling:\n * initializing source docker://a.lab/b:2: pinging "
    "container registry a.lab: Get \"https://a.lab/v2/\": dial tcp 10.0.0.9:443: connect: "
    "connection refused\n * initializing source docker://b:2: reading manifest 2 in "
    "docker.io/library/b: manifest unknown",
    "",
};

TEST(ImageTroubleTest, ARegistryThatDoesNotAnswerAndAFullDiskPass) {
  for (const char* words : kPassing) EXPECT_TRUE(ExplainImageTrouble(words).is_passing) << words;
  EXPECT_EQ(ExplainImageTrouble(kPassing[0]).code, v1::FAILURE_CODE_REGISTRY_UNAVAILABLE);
}

TEST(ImageTroubleTest, WhatARegistryHasNotOrDoesNotGiveIsTheJobsDoing) {
  for (const char* words : kFinal) EXPECT_FALSE(ExplainImageTrouble(words).is_passing) << words;
}

TEST(ImageTroubleTest, TheCodeSaysWhatIsWrongWithTheImage) {
  const auto code = [](const char* words) { return ExplainImageTrouble(words).code; };
  EXPECT_EQ(code(kFinal[0]), v1::FAILURE_CODE_IMAGE_NOT_FOUND);
  EXPECT_EQ(code(kFinal[2]), v1::FAILURE_CODE_IMAGE_ACCESS_DENIED);
  EXPECT_EQ(code(kFinal[3]), v1::FAILURE_CODE_IMAGE_ACCESS_DENIED) << "it may be there";
  EXPECT_EQ(code(kFinal[5]), v1::FAILURE_CODE_IMAGE_NOT_FOUND);
  EXPECT_EQ(code(kFinal[6]), v1::FAILURE_CODE_IMAGE_UNAVAILABLE);
  EXPECT_EQ(code(*std::rbegin(kPassing)), v1::FAILURE_CODE_NO_ROOM_FOR_IMAGE);
}

TEST(ImageTroubleTest, ARunWhoseRegistryDoesNotAnswerIsFollowedByAnotherOne) {
  const auto end = [](const char* words) {
    const ExitRecord exit = {
        .end = ExitRecord::End::kNotStarted, .step = ExitRecord::Step::kImage, .path = words};
    return *EndVerdict({.run_key = "k-1-1", .hostname = "box", .now = absl::Now()}, exit).failure;
  };
  // This is the same as on Slurm and Kubernetes: clients tell the two by `retriable`.
  EXPECT_EQ(end(kPassing[0]).failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_TRUE(end(kPassing[0]).retriable());
  EXPECT_EQ(end(kFinal[0]).failure_class(), v1::FAILURE_CLASS_IMAGE);
  EXPECT_FALSE(end(kFinal[0]).retriable());
}

}  // namespace
}  // namespace muster::machines
