import GatewayCore
import GatewayTestKit
import Testing

@Suite("APIKeyRecord")
struct APIKeyRecordTests {
    @Test(
        "A key addresses the topics that start with one of its prefixes",
        arguments: [
            ([], "anything", true), (["news-"], "news-sport", true), (["news-"], "news-", true),
            (["news-"], "news", false), (["news-"], "News-sport", false), (["news-"], "xnews-", false),
            (["a", "b"], "banana", true), (["a", "b"], "cherry", false), ([""], "anything", true),
            (["caf%C3%A9"], "café", false),
        ]
    )
    func topicPrefixes(prefixes: [String], topic: String, isAllowed: Bool) throws {
        let record = try APIKeyRecord.sample(of: .generate(), topicPrefixes: prefixes)
        #expect(record.mayAddress(topic: topic) == isAllowed)
    }

    @Test(
        "A key lives until it expires or is revoked, whichever is first",
        arguments: [
            (nil, nil, 0, true), (10, nil, 9, true), (10, nil, 10, false), (10, nil, 11, false), (nil, 5, 0, false),
            (10, 5, 0, false), (-1, nil, 0, false),
        ] as [(Int?, Int?, Int, Bool)]
    )
    func life(expiry: Int?, revocation: Int?, now: Int, isAlive: Bool) throws {
        func moment(_ seconds: Int) -> Timestamp { Timestamp.sample.advanced(by: .seconds(seconds)) }
        let record = try APIKeyRecord.sample(
            of: .generate(),
            expiresAt: expiry.map(moment),
            revokedAt: revocation.map(moment)
        )
        #expect(record.isAlive(at: moment(now)) == isAlive)
    }
}
