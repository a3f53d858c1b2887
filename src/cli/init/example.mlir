// A matrix times a vector, with ones everywhere 1024, plus the number of the row: rows that change places are seen.
func.func @main(%matrix: tensor<1024x1024xf32>, %vector: tensor<1024xf32>) -> tensor<1024xf32> {
  %empty = tensor.empty() : tensor<1024xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
    outs(%empty : tensor<1024xf32>) {
  ^bb0(%out: f32):
    %row = linalg.index 0 : index
    %integer = arith.index_cast %row : index to i32
    %number = arith.sitofp %integer : i32 to f32
    linalg.yield %number : f32
  } -> tensor<1024xf32>
  %sum = linalg.matvec ins(%matrix, %vector : tensor<1024x1024xf32>, tensor<1024xf32>)
    outs(%rows : tensor<1024xf32>) -> tensor<1024xf32>
  return %sum : tensor<1024xf32>
}
