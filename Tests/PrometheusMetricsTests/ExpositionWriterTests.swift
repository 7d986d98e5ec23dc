import Testing

@testable import PrometheusMetrics

@Suite("ExpositionWriter")
struct ExpositionWriterTests {
    @Test(
        "Numbers have the format's texts",
        arguments: [
            (0, "0"),
            (-0.0, "0"),
            (1, "1"),
            (-3, "-3"),
            (0.005, "0.005"),
            (2.5, "2.5"),
            (1e-7, "1e-07"),
            (9_007_199_254_740_991, "9007199254740991"),
            (1e300, "1e+300"),
            (.infinity, "+Inf"),
            (-.infinity, "-Inf"),
            (.nan, "NaN"),
        ] as [(Double, String)]
    )
    func numbers(value: Double, text: String) {
        #expect(ExpositionWriter.text(value) == text)
    }
}
