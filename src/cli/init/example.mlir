// A matrix times a vector: with ones everywhere, 1024 of 1024.
func.func @main(%matrix: tensor<1024x1024xf32>, %vector: tensor<1024xf32>) -> tensor<1024xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<1024xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1024xf32>) -> tensor<1024xf32>
  %product = linalg.matvec ins(%matrix, %vector : tensor<1024x1024xf32>, tensor<1024xf32>)
    outs(%zeros : tensor<1024xf32>) -> tensor<1024xf32>
  return %product : tensor<1024xf32>
}
