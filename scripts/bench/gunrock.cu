// Searches by Gunrock from each of some sources; scripts/bench/gunrock.py builds and calls it.
//
//   gunrock FOLDER bfs|sssp SECONDS WAY ...
//
// FOLDER has a graph as CSR and the sources. Each file is an array of 32-bit words: offsets, targets, weights (floats)
// and sources. By each way, the first source is searched without being timed. Then one source after the other is, until
// SECONDS are over. A line on the standard output has the way, the source and the milliseconds that Gunrock reports;
// they leave out that it makes its buffers and fills the distances. Where a way has ended, a line says so. The file WAY
// in FOLDER then has the distances, one row per source.
//
// A way names how threads share the edges of a frontier. A "+" after it removes from each frontier of a search by hops
// what is no vertex.

// Gunrock's atomic functions ask for this name. HIP's compiler defines it for code of the device, and nvcc does not.
#ifdef __CUDA_ARCH__
#define __HIP_DEVICE_COMPILE__ 1
#endif

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <gunrock/algorithms/bfs.hxx>
#include <gunrock/algorithms/sssp.hxx>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using gunrock::memory_space_t;
using gunrock::operators::load_balance_t;
using Csr = gunrock::format::csr_t<memory_space_t::device, int, int, float>;

const std::map<std::string, load_balance_t> BALANCES = {
    {"block_mapped", load_balance_t::block_mapped},
    {"thread_mapped", load_balance_t::thread_mapped},
    {"merge_path_v2", load_balance_t::merge_path_v2},
};

template <typename T>
std::vector<T> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(path + " cannot be read");
  const std::streamsize size = file.tellg();
  std::vector<T> values(size / sizeof(T));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()), size);
  if (!file) throw std::runtime_error(path + " ends early");
  return values;
}

Csr read_graph(const std::string& folder) {
  const std::vector<int> offsets = read<int>(folder + "/offsets");
  const std::vector<int> targets = read<int>(folder + "/targets");
  const int n_vertices = static_cast<int>(offsets.size()) - 1;
  Csr csr(n_vertices, n_vertices, static_cast<int>(targets.size()));
  csr.row_offsets = offsets;
  csr.column_indices = targets;
  csr.nonzero_values = read<float>(folder + "/weights");
  return csr;
}

gunrock::options_t options_of(const std::string& way) {
  const bool is_filtered = way.back() == '+';
  gunrock::options_t options;
  options.advance_load_balance = BALANCES.at(is_filtered ? way.substr(0, way.size() - 1) : way);
  options.enable_filter = is_filtered;
  return options;
}

void synchronize() {
  const cudaError_t status = cudaDeviceSynchronize();
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

// Times search(source), which returns milliseconds, until the seconds are over. Distances have 32 bits.
template <typename Distance>
void measure(const std::string& folder, const std::string& way, double seconds,
             const thrust::device_vector<Distance>& distances, const std::function<float(int)>& search) {
  using Clock = std::chrono::steady_clock;
  const std::vector<int> sources = read<int>(folder + "/sources");
  std::ofstream rows(folder + "/" + way, std::ios::binary);
  std::vector<Distance> row(distances.size());
  std::chrono::duration<double> spent{0};
  search(sources.at(0));
  synchronize();
  for (const int source : sources) {
    if (spent.count() > seconds) break;
    const Clock::time_point began = Clock::now();
    const float milliseconds = search(source);
    synchronize();
    spent += Clock::now() - began;
    thrust::copy(distances.begin(), distances.end(), row.begin());
    rows.write(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(Distance));
    std::cout << way << " " << source << " " << milliseconds << std::endl;
  }
  rows.close();
  if (!rows) throw std::runtime_error(folder + "/" + way + " cannot be written");
  std::cout << way << " ended" << std::endl;
}

}  // namespace

int main(int count, char** words) try {
  if (count < 5) throw std::runtime_error("arguments: FOLDER bfs|sssp SECONDS WAY ...");
  const std::string folder = words[1];
  const bool by_hops = std::string(words[2]) == "bfs";
  const double seconds = std::atof(words[3]);
  Csr csr = read_graph(folder);
  auto graph = gunrock::graph::build<memory_space_t::device>(gunrock::graph::graph_properties_t(), csr);
  const auto context = std::make_shared<gunrock::gcuda::multi_context_t>(0);
  thrust::device_vector<int> hops(csr.number_of_rows);
  thrust::device_vector<float> lengths(csr.number_of_rows);
  for (int i = 4; i < count; ++i) {
    const gunrock::options_t options = options_of(words[i]);
    if (by_hops) {
      measure<int>(folder, words[i], seconds, hops, [&](int source) {
        gunrock::bfs::param_t<int> param(source, options);
        gunrock::bfs::result_t<int> result(hops.data().get(), nullptr);
        return gunrock::bfs::run(graph, param, result, context);
      });
    } else {
      measure<float>(folder, words[i], seconds, lengths, [&](int source) {
        gunrock::sssp::param_t<int> param(source, options);
        gunrock::sssp::result_t<int, float> result(lengths.data().get(), nullptr, csr.number_of_rows);
        return gunrock::sssp::run(graph, param, result, context);
      });
    }
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
