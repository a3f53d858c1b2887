#map = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
module {
  util.global private @w0 = #flow.parameter.named<"model"::"w0"> : tensor<256x256xf32>
  func.func @main(%arg0: tensor<128x256xf32>) -> tensor<128x256xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = util.global.load @w0 : tensor<256x256xf32>
    %cst_1 = arith.constant 2.560000e+02 : f32
    %expanded = tensor.expand_shape %arg0 [[0], [1, 2]] output_shape [128, 1, 256] : tensor<128x256xf32> into tensor<128x1x256xf32>
    %expanded_2 = tensor.expand_shape %cst_0 [[0, 1], [2]] output_shape [1, 256, 256] : tensor<256x256xf32> into tensor<1x256x256xf32>
    %0 = tensor.empty() : tensor<128x256x256xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded, %expanded_2 : tensor<128x1x256xf32>, tensor<1x256x256xf32>) outs(%0 : tensor<128x256x256xf32>) {
    ^bb0(%in: f32, %in_3: f32, %out: f32):
      %7 = arith.subf %in, %in_3 : f32
      linalg.yield %7 : f32
    } -> tensor<128x256x256xf32>
    %2 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1 : tensor<128x256x256xf32>) outs(%0 : tensor<128x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = math.absf %in : f32
      linalg.yield %7 : f32
    } -> tensor<128x256x256xf32>
    %3 = tensor.empty() : tensor<128x256xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %5 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%2 : tensor<128x256x256xf32>) outs(%4 : tensor<128x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.addf %in, %out : f32
      linalg.yield %7 : f32
    } -> tensor<128x256xf32>
    %6 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<128x256xf32>) outs(%3 : tensor<128x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.divf %in, %cst_1 : f32
      linalg.yield %7 : f32
    } -> tensor<128x256xf32>
    return %6 : tensor<128x256xf32>
  }
}

