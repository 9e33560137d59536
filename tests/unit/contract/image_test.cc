#include "contract/image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "contract/errors.h"

namespace muster::contract {
namespace {

using testing::HasSubstr;

const std::string kDigest = "sha256:" + std::string(64, 'a');

Image Parsed(std::string_view text) {
  absl::StatusOr<Image> image = ParseImage(text);
  EXPECT_TRUE(image.ok()) << text << ": " << image.status();
  return image.ok() ? *image : Image();
}

TEST(ParseImage, EveryFormHasOneSpellingForEachReader) {
  const struct {
    std::string text, pyxis, oci, file;
  } cases[] = {
      {"nvcr.io/nvidia/tao/tao-toolkit:5.5.0-pyt", "nvcr.io#nvidia/tao/tao-toolkit:5.5.0-pyt",
       "nvcr.io/nvidia/tao/tao-toolkit:5.5.0-pyt", "nvcr.io+nvidia+tao+tao-toolkit=5.5.0-pyt.sqsh"},
      {"nvcr.io#nvidia/pytorch:24.01-py3", "nvcr.io#nvidia/pytorch:24.01-py3",
       "nvcr.io/nvidia/pytorch:24.01-py3", "nvcr.io+nvidia+pytorch=24.01-py3.sqsh"},
      {"docker://nvcr.io#nvidia/pytorch:24.01-py3", "nvcr.io#nvidia/pytorch:24.01-py3",
       "nvcr.io/nvidia/pytorch:24.01-py3", "nvcr.io+nvidia+pytorch=24.01-py3.sqsh"},
      {"docker://nvcr.io/nvidia/pytorch", "nvcr.io#nvidia/pytorch:latest",
       "nvcr.io/nvidia/pytorch:latest", "nvcr.io+nvidia+pytorch=latest.sqsh"},
      {"ubuntu", "registry-1.docker.io#library/ubuntu:latest", "docker.io/library/ubuntu:latest",
       "docker.io+library+ubuntu=latest.sqsh"},
      {"ubuntu:22.04", "registry-1.docker.io#library/ubuntu:22.04",
       "docker.io/library/ubuntu:22.04", "docker.io+library+ubuntu=22.04.sqsh"},
      {"docker.io/ubuntu:22.04", "registry-1.docker.io#library/ubuntu:22.04",
       "docker.io/library/ubuntu:22.04", "docker.io+library+ubuntu=22.04.sqsh"},
      {"org/img:2", "registry-1.docker.io#org/img:2", "docker.io/org/img:2",
       "docker.io+org+img=2.sqsh"},
      {"docker://registry-1.docker.io#org/img:2", "registry-1.docker.io#org/img:2",
       "docker.io/org/img:2", "docker.io+org+img=2.sqsh"},
      {"docker.io#a.b/c:1", "registry-1.docker.io#a.b/c:1", "docker.io/a.b/c:1",
       "docker.io+a.b+c=1.sqsh"},
      {"localhost/img", "localhost#img:latest", "localhost/img:latest",
       "localhost+img=latest.sqsh"},
      {"localhost:5000/img:1", "localhost:5000#img:1", "localhost:5000/img:1",
       "localhost=5000+img=1.sqsh"},
      {"127.0.0.1:5998#private/bar:1", "127.0.0.1:5998#private/bar:1",
       "127.0.0.1:5998/private/bar:1", "127.0.0.1=5998+private+bar=1.sqsh"},
      {"myregistry#team/img:1", "myregistry#team/img:1", "myregistry/team/img:1",
       "myregistry+team+img=1.sqsh"},
      {"NVCR.IO/nvidia/a:B", "nvcr.io#nvidia/a:B", "nvcr.io/nvidia/a:B", "nvcr.io+nvidia+a=B.sqsh"},
      {"nvcr.io/a@" + kDigest, "nvcr.io#a@" + kDigest, "nvcr.io/a@" + kDigest,
       "nvcr.io+a@sha256=" + std::string(64, 'a') + ".sqsh"},
      {"nvcr.io#a:1@" + kDigest, "nvcr.io#a@" + kDigest, "nvcr.io/a@" + kDigest,
       "nvcr.io+a@sha256=" + std::string(64, 'a') + ".sqsh"},
      {"docker://$oauthtoken@nvcr.io#a:1", "$oauthtoken@nvcr.io#a:1", "nvcr.io/a:1",
       "nvcr.io+a=1.sqsh"},
      {"me@ubuntu:22.04", "me@registry-1.docker.io#library/ubuntu:22.04",
       "docker.io/library/ubuntu:22.04", "docker.io+library+ubuntu=22.04.sqsh"},
      {"me@nvcr.io/a:1", "me@nvcr.io#a:1", "nvcr.io/a:1", "nvcr.io+a=1.sqsh"},
      {"me@img@" + kDigest, "me@registry-1.docker.io#library/img@" + kDigest,
       "docker.io/library/img@" + kDigest,
       "docker.io+library+img@sha256=" + std::string(64, 'a') + ".sqsh"},
  };
  for (const auto& c : cases) {
    const Image image = Parsed(c.text);
    EXPECT_EQ(PyxisImage(image), c.pyxis) << c.text;
    EXPECT_EQ(EnrootUri(image), "docker://" + c.pyxis) << c.text;
    EXPECT_EQ(OciReference(image), c.oci) << c.text;
    EXPECT_EQ(SquashFileName(image), c.file) << c.text;
  }
}

TEST(ParseImage, ASquashFileStaysAsItIs) {
  for (const char* path : {"/lustre/images/tao.sqsh", "/a b/x#y:z.sqfs", "/x.squashfs"}) {
    const Image image = Parsed(path);
    EXPECT_TRUE(image.is_file());
    EXPECT_EQ(PyxisImage(image), path);
    EXPECT_EQ(EnrootUri(image), "");
    EXPECT_EQ(OciReference(image), "");
    EXPECT_EQ(SquashFileName(image), "");
  }
}

TEST(ParseImage, AnOrganisationIsNotTakenForARegistry) {
  EXPECT_EQ(Parsed("nvidia/cuda:12.4.1-base-ubuntu22.04").registry, "docker.io");
  EXPECT_EQ(Parsed("docker://nvidia/cuda:12").registry, "docker.io");
}

TEST(ParseImage, ErrorsNameTheFieldTheTextAndTheRemedy) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "names no image"},
      {"./x.sqsh", "absolute"},
      {"/lustre/image.tar", ".sqsh"},
      {"/x\n.sqsh", "control characters"},
      {"/" + std::string(5000, 'x') + ".sqsh", "4095 bytes"},
      {"nvcr.io/Nvidia/TAO:1", "lower case"},
      {"nvcr.io/", "names the image \"\""},
      {"#a", "names the registry \"\""},
      {"a#b#c", "names the image \"b#c\""},
      {"nvcr.io//a", "names the image \"/a\""},
      {"nvcr.io/a:", "has the tag \"\""},
      {"nvcr.io/a:-x", "has the tag"},
      {"nvcr.io/a:" + std::string(129, 'x'), "1 to 128"},
      {"nvcr.io/a@sha1:12", "64 lower-case hexadecimal"},
      {"nvcr.io/a@sha256:12", "64 lower-case hexadecimal"},
      {"nvcr.io/a@sha256:" + std::string(64, 'G'), "64 lower-case hexadecimal"},
      {"localhost:99999/a", "names the registry \"localhost:99999\""},
      {"localhost:x/a", "names the registry"},
      {"-x.io/a", "names the registry"},
      {"u:secret@nvcr.io#a", "passwords"},
      {"a b", "names the image"},
      {"UPPER CASE:::bad", "lower-case letters, digits and, between them, '.', '-' and '_'"},
      {"$(id)", "names the image"},
      {"dockerd://a", "daemon"},
      {"podman://a", "daemon"},
      {"https://nvcr.io/a", "scheme \"https\""},
      {std::string(220, 'a'), "at most 220"},
  };
  for (const auto& [text, words] : cases) {
    const absl::Status status = ParseImage(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words)) << text;
    const auto bad = GetBadRequest(status);
    ASSERT_TRUE(bad.has_value()) << text;
    EXPECT_EQ(bad->field_violations(0).field(), "image") << text;
  }
}

// ---- random texts

rc::Gen<std::string> AnyText() {
  return rc::gen::container<std::string>(rc::gen::oneOf(
      rc::gen::elementOf(std::string("ab1A.:/#@_-$ \n")), rc::gen::arbitrary<char>()));
}

rc::Gen<std::string> AnyReference() {
  const auto part = [](std::vector<std::string> choices) { return rc::gen::elementOf(choices); };
  return rc::gen::map(
      rc::gen::tuple(part({"", "docker://"}), part({"", "u@", "$oauthtoken@"}),
                     part({"", "nvcr.io", "localhost", "a-b.c:1", "docker.io", "plain"}),
                     part({"#", "/"}), part({"a", "a/b", "a_b", "a__b", "a--b/c.d", "library/a"}),
                     part({"", ":1", ":latest", ":A_b.c-d"}), part({"", "@" + kDigest})),
      [](const auto& t) {
        const auto& [scheme, user, registry, joint, name, tag, digest] = t;
        return scheme + user + (registry.empty() ? "" : registry + joint) + name + tag + digest;
      });
}

RC_GTEST_PROP(ParseImage, EverySpellingReadsBackAsTheSameImage, ()) {
  Image image = Parsed(*AnyReference());
  RC_ASSERT(Parsed(PyxisImage(image)) == image);
  RC_ASSERT(Parsed(EnrootUri(image)) == image);
  image.user.clear();
  // A registry without a dot is only told from an organisation by Pyxis' '#'.
  if (image.registry != "plain") RC_ASSERT(Parsed(OciReference(image)) == image);
}

RC_GTEST_PROP(ParseImage, DifferentImagesHaveDifferentFileNames, ()) {
  Image one = Parsed(*AnyReference());
  Image other = Parsed(*AnyReference());
  one.user = other.user = "";
  RC_ASSERT((one == other) == (SquashFileName(one) == SquashFileName(other)));
}

RC_GTEST_PROP(ParseImage, AnyTextIsRefusedOrReadBackAsItself, ()) {
  const std::string text = *AnyText();
  const absl::StatusOr<Image> image = ParseImage(text);
  if (!image.ok()) {
    RC_ASSERT(image.status().code() == absl::StatusCode::kInvalidArgument);
    return;
  }
  RC_ASSERT(Parsed(PyxisImage(*image)) == *image);
  RC_ASSERT(SquashFileName(*image).find_first_of("/ \n") == std::string::npos);
}

}  // namespace
}  // namespace muster::contract
