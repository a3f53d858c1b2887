#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map2 = affine_map<(d0, d1, d2) -> (d2)>
#map3 = affine_map<(d0, d1) -> (d1)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  util.global private @w0 = #flow.parameter.named<"model"::"w0"> : tensor<128xf32>
  util.global private @w1 = #flow.parameter.named<"model"::"w1"> : tensor<128x256xf32>
  util.global private @w2 = #flow.parameter.named<"model"::"w2"> : tensor<256xf32>
  util.global private @w3 = #flow.parameter.named<"model"::"w3"> : tensor<256x128xf32>
  util.global private @w4 = #flow.parameter.named<"model"::"w4"> : tensor<128xf32>
  util.global private @w5 = #flow.parameter.named<"model"::"w5"> : tensor<128xf32>
  util.global private @w6 = #flow.parameter.named<"model"::"w6"> : tensor<128xf32>
  util.global private @w7 = #flow.parameter.named<"model"::"w7"> : tensor<128x128xf32>
  util.global private @w8 = #flow.parameter.named<"model"::"w8"> : tensor<384xf32>
  util.global private @w9 = #flow.parameter.named<"model"::"w9"> : tensor<384x128xf32>
  util.global private @w10 = #flow.parameter.named<"model"::"w10"> : tensor<128xf32>
  util.global private @w11 = #flow.parameter.named<"model"::"w11"> : tensor<128xf32>
  func.func @main(%arg0: tensor<1x256x128xf32>) -> tensor<1x256x128xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_2 = arith.constant 1.000000e+00 : f32
    %cst_3 = arith.constant 5.000000e-01 : f32
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<1x4x256x256xf32>
    %cst_5 = util.global.load @w0 : tensor<128xf32>
    %cst_6 = util.global.load @w1 : tensor<128x256xf32>
    %cst_7 = util.global.load @w2 : tensor<256xf32>
    %cst_8 = util.global.load @w3 : tensor<256x128xf32>
    %cst_9 = util.global.load @w4 : tensor<128xf32>
    %cst_10 = util.global.load @w5 : tensor<128xf32>
    %cst_11 = util.global.load @w6 : tensor<128xf32>
    %cst_12 = util.global.load @w7 : tensor<128x128xf32>
    %cst_13 = arith.constant 0xFFF0000000000000 : f64
    %cst_14 = arith.constant 0.42044820762685725 : f64
    %cst_15 = util.global.load @w8 : tensor<384xf32>
    %cst_16 = util.global.load @w9 : tensor<384x128xf32>
    %cst_17 = util.global.load @w10 : tensor<128xf32>
    %cst_18 = util.global.load @w11 : tensor<128xf32>
    %cst_19 = arith.constant 1.000000e-05 : f64
    %cst_20 = arith.constant 1.280000e+02 : f64
    %cst_21 = arith.constant 1.280000e+02 : f32
    %cst_22 = arith.constant 1.41421354 : f32
    %0 = tensor.empty() : tensor<1x256x128xf64>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<1x256x128xf32>) outs(%0 : tensor<1x256x128xf64>) {
    ^bb0(%in: f32, %out: f64):
      %94 = arith.extf %in : f32 to f64
      linalg.yield %94 : f64
    } -> tensor<1x256x128xf64>
    %2 = tensor.empty() : tensor<1x256x1xf64>
    %3 = linalg.fill ins(%cst : f64) outs(%2 : tensor<1x256x1xf64>) -> tensor<1x256x1xf64>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1 : tensor<1x256x128xf64>) outs(%3 : tensor<1x256x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %94 = arith.addf %in, %out : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x1xf64>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%4 : tensor<1x256x1xf64>) outs(%2 : tensor<1x256x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %94 = arith.divf %in, %cst_20 : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x1xf64>
    %6 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %5 : tensor<1x256x128xf64>, tensor<1x256x1xf64>) outs(%0 : tensor<1x256x128xf64>) {
    ^bb0(%in: f64, %in_57: f64, %out: f64):
      %94 = arith.subf %in, %in_57 : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x128xf64>
    %7 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %6 : tensor<1x256x128xf64>, tensor<1x256x128xf64>) outs(%0 : tensor<1x256x128xf64>) {
    ^bb0(%in: f64, %in_57: f64, %out: f64):
      %94 = arith.mulf %in, %in_57 : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x128xf64>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%7 : tensor<1x256x128xf64>) outs(%3 : tensor<1x256x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %94 = arith.addf %in, %out : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x1xf64>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<1x256x1xf64>) outs(%2 : tensor<1x256x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %94 = arith.divf %in, %cst_20 : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x1xf64>
    %10 = tensor.empty() : tensor<1x256x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<1x256x1xf64>) outs(%10 : tensor<1x256x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %94 = arith.truncf %in : f64 to f32
      linalg.yield %94 : f32
    } -> tensor<1x256x1xf32>
    %12 = linalg.fill ins(%cst_0 : f32) outs(%10 : tensor<1x256x1xf32>) -> tensor<1x256x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0 : tensor<1x256x128xf32>) outs(%12 : tensor<1x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.addf %in, %out : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13 : tensor<1x256x1xf32>) outs(%10 : tensor<1x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.divf %in, %cst_21 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<1x256x1xf32>) outs(%10 : tensor<1x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.truncf %cst_19 : f64 to f32
      %95 = arith.addf %in, %94 : f32
      linalg.yield %95 : f32
    } -> tensor<1x256x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<1x256x1xf32>) outs(%10 : tensor<1x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = math.rsqrt %in : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x1xf32>
    %17 = tensor.empty() : tensor<1x256x128xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %14 : tensor<1x256x128xf32>, tensor<1x256x1xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.subf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18, %16 : tensor<1x256x128xf32>, tensor<1x256x1xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.mulf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19, %cst_18 : tensor<1x256x128xf32>, tensor<128xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.mulf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20, %cst_17 : tensor<1x256x128xf32>, tensor<128xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.addf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %22 = tensor.empty() : tensor<256x1x128xf32>
    %transposed = linalg.transpose ins(%21 : tensor<1x256x128xf32>) outs(%22 : tensor<256x1x128xf32>) permutation = [1, 0, 2] 
    %collapsed = tensor.collapse_shape %transposed [[0], [1, 2]] : tensor<256x1x128xf32> into tensor<256x128xf32>
    %23 = tensor.empty() : tensor<128x384xf32>
    %transposed_23 = linalg.transpose ins(%cst_16 : tensor<384x128xf32>) outs(%23 : tensor<128x384xf32>) permutation = [1, 0] 
    %24 = tensor.empty() : tensor<256x384xf32>
    %25 = linalg.fill ins(%cst_0 : f32) outs(%24 : tensor<256x384xf32>) -> tensor<256x384xf32>
    %26 = linalg.matmul ins(%collapsed, %transposed_23 : tensor<256x128xf32>, tensor<128x384xf32>) outs(%25 : tensor<256x384xf32>) -> tensor<256x384xf32>
    %27 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_15 : tensor<384xf32>) outs(%24 : tensor<256x384xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<256x384xf32>
    %28 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%26, %27 : tensor<256x384xf32>, tensor<256x384xf32>) outs(%24 : tensor<256x384xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.addf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<256x384xf32>
    %expanded = tensor.expand_shape %28 [[0, 1], [2, 3, 4]] output_shape [1, 256, 1, 3, 128] : tensor<256x384xf32> into tensor<1x256x1x3x128xf32>
    %29 = tensor.empty() : tensor<3x256x1x1x128xf32>
    %transposed_24 = linalg.transpose ins(%expanded : tensor<1x256x1x3x128xf32>) outs(%29 : tensor<3x256x1x1x128xf32>) permutation = [3, 1, 2, 0, 4] 
    %collapsed_25 = tensor.collapse_shape %transposed_24 [[0], [1], [2, 3], [4]] : tensor<3x256x1x1x128xf32> into tensor<3x256x1x128xf32>
    %extracted_slice = tensor.extract_slice %collapsed_25[0, 0, 0, 0] [1, 256, 1, 128] [1, 1, 1, 1] : tensor<3x256x1x128xf32> to tensor<1x256x1x128xf32>
    %extracted_slice_26 = tensor.extract_slice %collapsed_25[1, 0, 0, 0] [1, 256, 1, 128] [1, 1, 1, 1] : tensor<3x256x1x128xf32> to tensor<1x256x1x128xf32>
    %extracted_slice_27 = tensor.extract_slice %collapsed_25[2, 0, 0, 0] [1, 256, 1, 128] [1, 1, 1, 1] : tensor<3x256x1x128xf32> to tensor<1x256x1x128xf32>
    %collapsed_28 = tensor.collapse_shape %extracted_slice [[0, 1], [2, 3]] : tensor<1x256x1x128xf32> into tensor<256x128xf32>
    %expanded_29 = tensor.expand_shape %collapsed_28 [[0], [1, 2]] output_shape [256, 4, 32] : tensor<256x128xf32> into tensor<256x4x32xf32>
    %30 = tensor.empty() : tensor<4x256x32xf32>
    %transposed_30 = linalg.transpose ins(%expanded_29 : tensor<256x4x32xf32>) outs(%30 : tensor<4x256x32xf32>) permutation = [1, 0, 2] 
    %collapsed_31 = tensor.collapse_shape %extracted_slice_26 [[0, 1], [2, 3]] : tensor<1x256x1x128xf32> into tensor<256x128xf32>
    %expanded_32 = tensor.expand_shape %collapsed_31 [[0], [1, 2]] output_shape [256, 4, 32] : tensor<256x128xf32> into tensor<256x4x32xf32>
    %transposed_33 = linalg.transpose ins(%expanded_32 : tensor<256x4x32xf32>) outs(%30 : tensor<4x256x32xf32>) permutation = [1, 0, 2] 
    %collapsed_34 = tensor.collapse_shape %extracted_slice_27 [[0, 1], [2, 3]] : tensor<1x256x1x128xf32> into tensor<256x128xf32>
    %expanded_35 = tensor.expand_shape %collapsed_34 [[0], [1, 2]] output_shape [256, 4, 32] : tensor<256x128xf32> into tensor<256x4x32xf32>
    %transposed_36 = linalg.transpose ins(%expanded_35 : tensor<256x4x32xf32>) outs(%30 : tensor<4x256x32xf32>) permutation = [1, 0, 2] 
    %expanded_37 = tensor.expand_shape %transposed_30 [[0, 1], [2], [3]] output_shape [1, 4, 256, 32] : tensor<4x256x32xf32> into tensor<1x4x256x32xf32>
    %expanded_38 = tensor.expand_shape %transposed_33 [[0, 1], [2], [3]] output_shape [1, 4, 256, 32] : tensor<4x256x32xf32> into tensor<1x4x256x32xf32>
    %31 = tensor.empty() : tensor<1x4x256x32xf32>
    %32 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_37 : tensor<1x4x256x32xf32>) outs(%31 : tensor<1x4x256x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.truncf %cst_14 : f64 to f32
      %95 = arith.mulf %in, %94 : f32
      linalg.yield %95 : f32
    } -> tensor<1x4x256x32xf32>
    %33 = tensor.empty() : tensor<1x4x32x256xf32>
    %transposed_39 = linalg.transpose ins(%expanded_38 : tensor<1x4x256x32xf32>) outs(%33 : tensor<1x4x32x256xf32>) permutation = [0, 1, 3, 2] 
    %34 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_39 : tensor<1x4x32x256xf32>) outs(%33 : tensor<1x4x32x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.truncf %cst_14 : f64 to f32
      %95 = arith.mulf %in, %94 : f32
      linalg.yield %95 : f32
    } -> tensor<1x4x32x256xf32>
    %collapsed_40 = tensor.collapse_shape %32 [[0, 1], [2], [3]] : tensor<1x4x256x32xf32> into tensor<4x256x32xf32>
    %collapsed_41 = tensor.collapse_shape %34 [[0, 1], [2], [3]] : tensor<1x4x32x256xf32> into tensor<4x32x256xf32>
    %35 = tensor.empty() : tensor<4x256x256xf32>
    %36 = linalg.fill ins(%cst_0 : f32) outs(%35 : tensor<4x256x256xf32>) -> tensor<4x256x256xf32>
    %37 = linalg.batch_matmul ins(%collapsed_40, %collapsed_41 : tensor<4x256x32xf32>, tensor<4x32x256xf32>) outs(%36 : tensor<4x256x256xf32>) -> tensor<4x256x256xf32>
    %expanded_42 = tensor.expand_shape %37 [[0, 1], [2], [3]] output_shape [1, 4, 256, 256] : tensor<4x256x256xf32> into tensor<1x4x256x256xf32>
    %38 = tensor.empty() : tensor<1x4x256xi64>
    %39 = linalg.fill ins(%c0_i64 : i64) outs(%38 : tensor<1x4x256xi64>) -> tensor<1x4x256xi64>
    %40 = tensor.empty() : tensor<1x4x256xf32>
    %41 = linalg.fill ins(%cst_1 : f32) outs(%40 : tensor<1x4x256xf32>) -> tensor<1x4x256xf32>
    %42:2 = linalg.generic {indexing_maps = [#map5, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded_42 : tensor<1x4x256x256xf32>) outs(%41, %39 : tensor<1x4x256xf32>, tensor<1x4x256xi64>) {
    ^bb0(%in: f32, %out: f32, %out_57: i64):
      %94 = linalg.index 3 : index
      %95 = arith.index_cast %94 : index to i64
      %96 = arith.maximumf %in, %out : f32
      %97 = arith.cmpf ogt, %in, %out : f32
      %98 = arith.select %97, %95, %out_57 : i64
      linalg.yield %96, %98 : f32, i64
    } -> (tensor<1x4x256xf32>, tensor<1x4x256xi64>)
    %expanded_43 = tensor.expand_shape %42#0 [[0], [1], [2, 3]] output_shape [1, 4, 256, 1] : tensor<1x4x256xf32> into tensor<1x4x256x1xf32>
    %43 = tensor.empty() : tensor<1x4x256x256xf32>
    %44 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_42, %expanded_43 : tensor<1x4x256x256xf32>, tensor<1x4x256x1xf32>) outs(%43 : tensor<1x4x256x256xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.subf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x4x256x256xf32>
    %45 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%44 : tensor<1x4x256x256xf32>) outs(%43 : tensor<1x4x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = math.exp %in : f32
      linalg.yield %94 : f32
    } -> tensor<1x4x256x256xf32>
    %46 = tensor.empty() : tensor<1x4x256x1xf32>
    %47 = linalg.fill ins(%cst_0 : f32) outs(%46 : tensor<1x4x256x1xf32>) -> tensor<1x4x256x1xf32>
    %48 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%45 : tensor<1x4x256x256xf32>) outs(%47 : tensor<1x4x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.addf %in, %out : f32
      linalg.yield %94 : f32
    } -> tensor<1x4x256x1xf32>
    %49 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45, %48 : tensor<1x4x256x256xf32>, tensor<1x4x256x1xf32>) outs(%43 : tensor<1x4x256x256xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.divf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x4x256x256xf32>
    %50 = tensor.empty() : tensor<1x4x256x256xi1>
    %51 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_42 : tensor<1x4x256x256xf32>) outs(%50 : tensor<1x4x256x256xi1>) {
    ^bb0(%in: f32, %out: i1):
      %94 = arith.extf %in : f32 to f64
      %95 = arith.cmpf oeq, %94, %cst_13 : f64
      linalg.yield %95 : i1
    } -> tensor<1x4x256x256xi1>
    %52 = tensor.empty() : tensor<1x4x256x1xi1>
    %53 = linalg.fill ins(%true : i1) outs(%52 : tensor<1x4x256x1xi1>) -> tensor<1x4x256x1xi1>
    %54 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%51 : tensor<1x4x256x256xi1>) outs(%53 : tensor<1x4x256x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %94 = arith.andi %in, %out : i1
      linalg.yield %94 : i1
    } -> tensor<1x4x256x1xi1>
    %55 = linalg.generic {indexing_maps = [#map7, #map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%54, %cst_4, %49 : tensor<1x4x256x1xi1>, tensor<1x4x256x256xf32>, tensor<1x4x256x256xf32>) outs(%43 : tensor<1x4x256x256xf32>) {
    ^bb0(%in: i1, %in_57: f32, %in_58: f32, %out: f32):
      %94 = arith.select %in, %in_57, %in_58 : f32
      linalg.yield %94 : f32
    } -> tensor<1x4x256x256xf32>
    %collapsed_44 = tensor.collapse_shape %55 [[0, 1], [2], [3]] : tensor<1x4x256x256xf32> into tensor<4x256x256xf32>
    %56 = linalg.fill ins(%cst_0 : f32) outs(%30 : tensor<4x256x32xf32>) -> tensor<4x256x32xf32>
    %57 = linalg.batch_matmul ins(%collapsed_44, %transposed_36 : tensor<4x256x256xf32>, tensor<4x256x32xf32>) outs(%56 : tensor<4x256x32xf32>) -> tensor<4x256x32xf32>
    %expanded_45 = tensor.expand_shape %57 [[0, 1], [2], [3]] output_shape [1, 4, 256, 32] : tensor<4x256x32xf32> into tensor<1x4x256x32xf32>
    %58 = tensor.empty() : tensor<256x1x4x32xf32>
    %transposed_46 = linalg.transpose ins(%expanded_45 : tensor<1x4x256x32xf32>) outs(%58 : tensor<256x1x4x32xf32>) permutation = [2, 0, 1, 3] 
    %collapsed_47 = tensor.collapse_shape %transposed_46 [[0], [1, 2, 3]] : tensor<256x1x4x32xf32> into tensor<256x128xf32>
    %59 = tensor.empty() : tensor<128x128xf32>
    %transposed_48 = linalg.transpose ins(%cst_12 : tensor<128x128xf32>) outs(%59 : tensor<128x128xf32>) permutation = [1, 0] 
    %60 = tensor.empty() : tensor<256x128xf32>
    %61 = linalg.fill ins(%cst_0 : f32) outs(%60 : tensor<256x128xf32>) -> tensor<256x128xf32>
    %62 = linalg.matmul ins(%collapsed_47, %transposed_48 : tensor<256x128xf32>, tensor<128x128xf32>) outs(%61 : tensor<256x128xf32>) -> tensor<256x128xf32>
    %63 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_11 : tensor<128xf32>) outs(%60 : tensor<256x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<256x128xf32>
    %64 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%62, %63 : tensor<256x128xf32>, tensor<256x128xf32>) outs(%60 : tensor<256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.addf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<256x128xf32>
    %expanded_49 = tensor.expand_shape %64 [[0], [1, 2]] output_shape [256, 1, 128] : tensor<256x128xf32> into tensor<256x1x128xf32>
    %transposed_50 = linalg.transpose ins(%expanded_49 : tensor<256x1x128xf32>) outs(%17 : tensor<1x256x128xf32>) permutation = [1, 0, 2] 
    %65 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0, %transposed_50 : tensor<1x256x128xf32>, tensor<1x256x128xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.addf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %66 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%65 : tensor<1x256x128xf32>) outs(%0 : tensor<1x256x128xf64>) {
    ^bb0(%in: f32, %out: f64):
      %94 = arith.extf %in : f32 to f64
      linalg.yield %94 : f64
    } -> tensor<1x256x128xf64>
    %67 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%66 : tensor<1x256x128xf64>) outs(%3 : tensor<1x256x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %94 = arith.addf %in, %out : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x1xf64>
    %68 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%67 : tensor<1x256x1xf64>) outs(%2 : tensor<1x256x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %94 = arith.divf %in, %cst_20 : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x1xf64>
    %69 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%66, %68 : tensor<1x256x128xf64>, tensor<1x256x1xf64>) outs(%0 : tensor<1x256x128xf64>) {
    ^bb0(%in: f64, %in_57: f64, %out: f64):
      %94 = arith.subf %in, %in_57 : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x128xf64>
    %70 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%69, %69 : tensor<1x256x128xf64>, tensor<1x256x128xf64>) outs(%0 : tensor<1x256x128xf64>) {
    ^bb0(%in: f64, %in_57: f64, %out: f64):
      %94 = arith.mulf %in, %in_57 : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x128xf64>
    %71 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%70 : tensor<1x256x128xf64>) outs(%3 : tensor<1x256x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %94 = arith.addf %in, %out : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x1xf64>
    %72 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%71 : tensor<1x256x1xf64>) outs(%2 : tensor<1x256x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %94 = arith.divf %in, %cst_20 : f64
      linalg.yield %94 : f64
    } -> tensor<1x256x1xf64>
    %73 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%72 : tensor<1x256x1xf64>) outs(%10 : tensor<1x256x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %94 = arith.truncf %in : f64 to f32
      linalg.yield %94 : f32
    } -> tensor<1x256x1xf32>
    %74 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%65 : tensor<1x256x128xf32>) outs(%12 : tensor<1x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.addf %in, %out : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x1xf32>
    %75 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%74 : tensor<1x256x1xf32>) outs(%10 : tensor<1x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.divf %in, %cst_21 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x1xf32>
    %76 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%73 : tensor<1x256x1xf32>) outs(%10 : tensor<1x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.truncf %cst_19 : f64 to f32
      %95 = arith.addf %in, %94 : f32
      linalg.yield %95 : f32
    } -> tensor<1x256x1xf32>
    %77 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%76 : tensor<1x256x1xf32>) outs(%10 : tensor<1x256x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = math.rsqrt %in : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x1xf32>
    %78 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%65, %75 : tensor<1x256x128xf32>, tensor<1x256x1xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.subf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %79 = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%78, %77 : tensor<1x256x128xf32>, tensor<1x256x1xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.mulf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %80 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%79, %cst_10 : tensor<1x256x128xf32>, tensor<128xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.mulf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %81 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%80, %cst_9 : tensor<1x256x128xf32>, tensor<128xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.addf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    %collapsed_51 = tensor.collapse_shape %81 [[0, 1], [2]] : tensor<1x256x128xf32> into tensor<256x128xf32>
    %82 = tensor.empty() : tensor<128x256xf32>
    %transposed_52 = linalg.transpose ins(%cst_8 : tensor<256x128xf32>) outs(%82 : tensor<128x256xf32>) permutation = [1, 0] 
    %83 = tensor.empty() : tensor<256x256xf32>
    %84 = linalg.fill ins(%cst_0 : f32) outs(%83 : tensor<256x256xf32>) -> tensor<256x256xf32>
    %85 = linalg.matmul ins(%collapsed_51, %transposed_52 : tensor<256x128xf32>, tensor<128x256xf32>) outs(%84 : tensor<256x256xf32>) -> tensor<256x256xf32>
    %86 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_7 : tensor<256xf32>) outs(%83 : tensor<256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<256x256xf32>
    %87 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%85, %86 : tensor<256x256xf32>, tensor<256x256xf32>) outs(%83 : tensor<256x256xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.addf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<256x256xf32>
    %expanded_53 = tensor.expand_shape %87 [[0, 1], [2]] output_shape [1, 256, 256] : tensor<256x256xf32> into tensor<1x256x256xf32>
    %88 = tensor.empty() : tensor<1x256x256xf32>
    %89 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_53 : tensor<1x256x256xf32>) outs(%88 : tensor<1x256x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %94 = arith.divf %in, %cst_22 : f32
      %95 = math.erf %94 : f32
      %96 = arith.addf %95, %cst_2 : f32
      %97 = arith.mulf %96, %cst_3 : f32
      %98 = arith.mulf %in, %97 : f32
      linalg.yield %98 : f32
    } -> tensor<1x256x256xf32>
    %collapsed_54 = tensor.collapse_shape %89 [[0, 1], [2]] : tensor<1x256x256xf32> into tensor<256x256xf32>
    %transposed_55 = linalg.transpose ins(%cst_6 : tensor<128x256xf32>) outs(%60 : tensor<256x128xf32>) permutation = [1, 0] 
    %90 = linalg.matmul ins(%collapsed_54, %transposed_55 : tensor<256x256xf32>, tensor<256x128xf32>) outs(%61 : tensor<256x128xf32>) -> tensor<256x128xf32>
    %91 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_5 : tensor<128xf32>) outs(%60 : tensor<256x128xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<256x128xf32>
    %92 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%90, %91 : tensor<256x128xf32>, tensor<256x128xf32>) outs(%60 : tensor<256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.addf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<256x128xf32>
    %expanded_56 = tensor.expand_shape %92 [[0, 1], [2]] output_shape [1, 256, 128] : tensor<256x128xf32> into tensor<1x256x128xf32>
    %93 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%65, %expanded_56 : tensor<1x256x128xf32>, tensor<1x256x128xf32>) outs(%17 : tensor<1x256x128xf32>) {
    ^bb0(%in: f32, %in_57: f32, %out: f32):
      %94 = arith.addf %in, %in_57 : f32
      linalg.yield %94 : f32
    } -> tensor<1x256x128xf32>
    return %93 : tensor<1x256x128xf32>
  }
}

