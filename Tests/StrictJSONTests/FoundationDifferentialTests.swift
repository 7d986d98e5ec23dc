import StrictJSON
import Testing

@Suite("Both Foundation's reader and ours")
struct FoundationDifferentialTests {
    private static let documentsPerSeed = 20_000

    @Test(
        "Generated and damaged documents are read alike, but for the known differences",
        arguments: [0x5EED_0001, 0x5EED_0002, 0x5EED_0003, 0x5EED_0004, 0x5EED_0005, 0x5EED_0006] as [UInt64]
    )
    func agreesWithFoundation(seed: UInt64) {
        var generator = DocumentGenerator(seed: seed)
        var mutator = DocumentMutator(seed: ~seed)
        var accepted = 0
        var refused = 0
        var differences: [KnownDifference: Int] = [:]
        for number in 0..<Self.documentsPerSeed {
            var document = generator.document()
            if number % 2 == 1 {
                document = mutator.mutated(document)
            }
            // Tight limits let small documents reach them.
            let limits = number % 4 < 2 ? JSONLimits() : JSONLimits(maxDepth: 3, maxMembers: 6)
            switch FoundationComparison(limits: limits).verdict(on: document) {
            case .agree(isAccepted: true):
                accepted += 1
            case .agree(isAccepted: false):
                refused += 1
            case .explained(let difference):
                differences[difference, default: 0] += 1
            case .unexplained(let why):
                let text = String(decoding: document, as: UTF8.self)
                Issue.record("document \(number): \(why)\n\(text)\n\(document)")
            }
        }
        // The corpus is worth something only if it reaches everything.
        #expect(accepted > Self.documentsPerSeed / 4)
        #expect(refused > Self.documentsPerSeed / 8)
        for difference in KnownDifference.allCases {
            #expect(differences[difference, default: 0] > 0, "\(difference) never came up")
        }
    }
}
