import Testing

@testable import GatewayCore

@Suite("RetiredTokenCounts")
struct RetiredTokenCountsTests {
    typealias Tally = RetiredTokenCounts.Tally

    @Test(
        "An hour is a spike if at least 20 recipients were judged and more than 20 % of them are unregistered",
        arguments: [
            (0, 0, false), (19, 19, false), (20, 4, false), (20, 5, true), (1_000, 200, false), (1_000, 201, true),
            (1_000_000_000, 1_000_000_000, true),
        ]
    )
    func share(judged: Int, unregistered: Int, isSpike: Bool) {
        #expect(Tally(judged: judged, unregistered: unregistered).isSpike == isSpike)
    }

    /// The buckets of the example in the type's documentation: the first one begins at 12:00.
    private static let example = RetiredTokenCounts(
        Dictionary(
            uniqueKeysWithValues: (0...25)
                .map { bucket in
                    let unregistered = [1: 15, 2: 75, 3: 75][bucket] ?? 0
                    return (bucket, Tally(judged: 75, unregistered: unregistered))
                }
        )
    )

    @Test("The documented fault is a spike from 12:10 to 12:50")
    func exampleSpike() {
        #expect((0...25).filter { Self.example.endsSpike($0) } == Array(2...9))
    }

    @Test(
        "A report is suspected if its own bucket or one of the next twelve ended a spike",
        arguments: [(1, true), (2, true), (9, true), (10, false), (11, false)]
    )
    func exampleReports(bucket: Int, isSuspect: Bool) {
        #expect(Self.example.isSuspect(dueIn: bucket + 13) == isSuspect)
    }

    @Test(
        "A report from before a spike is suspected if it is not due yet",
        arguments: [(0, false), (1, true), (2, true)]
    )
    func before(bucket: Int, isSuspect: Bool) {
        let counts = RetiredTokenCounts([13: Tally(judged: 100, unregistered: 100)])
        #expect(counts.isSuspect(dueIn: bucket + 13) == isSuspect)
    }

    @Test("A fault is detected within the hour even after many accepted sends")
    func diluted() {
        // 10,000 are accepted at once. Then the credential fails, and each bucket has three unregistered recipients.
        var tallies = [0: Tally(judged: 10_000)]
        for bucket in 1...12 { tallies[bucket] = Tally(judged: 3, unregistered: 3) }
        let counts = RetiredTokenCounts(tallies)
        #expect((0...12).filter { counts.endsSpike($0) } == [12])
        for bucket in 0...12 { #expect(counts.isSuspect(dueIn: bucket + 13)) }
    }

    @Test("A steady share of a fifth is not a spike in any bucket")
    func steady() {
        let tallies = (0...40).map { ($0, Tally(judged: 50, unregistered: 10)) }
        let counts = RetiredTokenCounts(Dictionary(uniqueKeysWithValues: tallies))
        #expect(!(0...40).contains { counts.endsSpike($0) })
        #expect(!counts.isSuspect(dueIn: 40))
    }
}
