#include "token_features.hpp"

#include "bind/common.hpp"

namespace scansion {
namespace {

FeatureTable table(const Int64s& rows, const Int32s& columns, int64_t width) {
  return {rows.data(), columns.data(), width};
}

}  // namespace

void bind_token_features(nb::module_& m) {
  m.def(
      "token_scores",
      [](const Int64s& token_offsets, const Int32s& ids, const std::optional<Doubles>& values, const Int64s& rows,
         const Int32s& columns, const Doubles& weights, const DoublesOut& out, int64_t threads) {
        const FeatureTable features = table(rows, columns, static_cast<int64_t>(out.shape(1)));
        nb::gil_scoped_release release;
        token_scores(static_cast<int64_t>(token_offsets.size()) - 1, token_offsets.data(), ids.data(),
                     data_or_null<double>(values), features, weights.data(), out.data(), threads);
      },
      nb::arg("token_offsets"), nb::arg("ids"), nb::arg("values").none(), nb::arg("rows"), nb::arg("columns"),
      nb::arg("weights"), nb::arg("out"), nb::arg("threads"),
      "Scores (tokens, width) of attributes under the weights of features (attribute, column).");
  m.def(
      "token_counts",
      [](const Int64s& offsets, const Int64s& tokens, const std::optional<Doubles>& values, const Int64s& rows,
         const Int32s& columns, const Doubles& counts, const DoublesOut& out, int64_t threads) {
        const FeatureTable features = table(rows, columns, static_cast<int64_t>(counts.shape(1)));
        nb::gil_scoped_release release;
        token_counts(static_cast<int64_t>(offsets.size()) - 1, offsets.data(), tokens.data(),
                     data_or_null<double>(values), features, counts.data(), out.data(), threads);
      },
      nb::arg("offsets"), nb::arg("tokens"), nb::arg("values").none(), nb::arg("rows"), nb::arg("columns"),
      nb::arg("counts"), nb::arg("out"), nb::arg("threads"),
      "Summed values (features,) of features whose columns count (tokens, width) times; entries by attribute.");
}

}  // namespace scansion
