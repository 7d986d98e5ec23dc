import Testing

@testable import FCMGateway

struct DescriptorLimitTests {
    @Test(
        "A quarter of the descriptors, at most 512, is kept from connections",
        arguments: [
            (16_384, nil, 16_384), (16_384, 1_048_576, 16_384), (16_384, 16_896, 16_384), (16_384, 16_895, 16_383),
            (16_384, 2_048, 1_536), (16_384, 1_024, 768), (16_384, 64, 48), (16_384, 3, 3), (16_384, 0, 1),
            (10, 1_024, 10), (16_384, Int.max, 16_384),
        ] as [(Int, Int?, Int)]
    )
    func connections(wanted: Int, limit: Int?, connections: Int) {
        #expect(DescriptorLimit.connections(wanted: wanted, limit: limit) == connections)
    }
}
