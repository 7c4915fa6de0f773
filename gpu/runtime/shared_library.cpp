#include "gpu/runtime/shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>

namespace attest {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> candidates(const std::string& name, const char* environment,
                                    const std::vector<std::string>& folders) {
  if (const char* file = std::getenv(environment); file != nullptr && *file != '\0') return {file};
  std::vector<std::string> files{name};
  for (const std::string& folder : folders) files.push_back(folder + "/" + name);
  return files;
}

/// Newest name first; none when the root is not there.
std::vector<fs::path> entries_of(const fs::path& root) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) entries.push_back(entry.path());
  std::ranges::sort(entries, std::greater<>());
  return entries;
}

}  // namespace

SharedLibrary::SharedLibrary(const std::string& name, const char* environment,
                             const std::vector<std::string>& folders) {
  std::string first_error;
  for (const std::string& file : candidates(name, environment, folders)) {
    if (file.find('/') != std::string::npos && !fs::exists(file)) continue;
    // Such libraries load their parts by name: RTLD_GLOBAL lets them find each other.
    handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (handle_ != nullptr) {
      path_ = file;
      return;
    }
    if (const char* error = dlerror(); error != nullptr && first_error.empty()) first_error = error;
  }
  why_missing_ =
      fmt::format("{} was not found ({}); set {} to its file", name,
                  first_error.empty() ? fmt::format("{} names no file", environment) : first_error,
                  environment);
}

void* SharedLibrary::function(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

std::vector<std::string> cuda_library_folders(const std::vector<std::string>& packages) {
  std::vector<std::string> folders{"/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64",
                                   "/usr/lib/x86_64-linux-gnu"};
  std::vector<fs::path> prefixes{"/usr/local", "/usr", "/opt/conda"};
  if (const char* active = std::getenv("VIRTUAL_ENV")) prefixes.insert(prefixes.begin(), active);
  for (const fs::path& option : entries_of("/opt")) prefixes.push_back(option / ".venv");
  if (const char* home = std::getenv("HOME")) {
    prefixes.emplace_back(fs::path(home) / ".local");
    for (const fs::path& version : entries_of(fs::path(home) / ".pyenv/versions")) {
      prefixes.push_back(version);
    }
  }
  for (const fs::path& prefix : prefixes) {
    for (const fs::path& python : entries_of(prefix / "lib")) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* site : {"site-packages", "dist-packages"}) {
        for (const std::string& package : packages) {
          folders.push_back((python / site / "nvidia" / package / "lib").string());
        }
      }
    }
  }
  return folders;
}

}  // namespace attest
