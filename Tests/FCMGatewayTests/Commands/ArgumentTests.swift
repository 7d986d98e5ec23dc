import ArgumentParser
import GatewayCore
import Testing

@testable import FCMGateway
@testable import GatewayService

struct ArgumentTests {
    @Test(
        "A duration is digits followed by a unit",
        arguments: [
            ("0s", 0), ("90s", 90), ("15m", 900), ("24h", 86_400), ("28d", 2_419_200), ("", nil), ("s", nil),
            ("90", nil), ("-1s", nil), ("+1s", nil), ("1.5h", nil), ("1h30m", nil), ("1 s", nil), ("1S", nil),
            ("99999999999999999999s", nil), ("9223372036854775807d", nil), ("١s", nil),
        ] as [(String, Int?)]
    )
    func duration(text: String, seconds: Int?) {
        #expect(DurationArgument(argument: text)?.seconds == seconds)
    }

    @Test(
        "A timestamp is RFC 3339 or a date, and is converted to UTC",
        arguments: [
            ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"),
            ("2026-01-31T00:30:00+01:00", "2026-01-30T23:30:00.000Z"),
            ("2026-12-31T23:30:00.5-01:00", "2027-01-01T00:30:00.500Z"),
            ("2026-01-31", "2026-01-31T00:00:00.000Z"), ("2026-02-29", nil), ("2026-02-29T00:00:00Z", nil),
            ("2026-01-31T12:00:00", nil), ("tomorrow", nil),
        ] as [(String, String?)]
    )
    func timestamp(text: String, utc: String?) {
        #expect(Timestamp(argument: text)?.rfc3339 == utc)
    }

    @Test(
        "A policy is RATE/PERIOD:BURST within the ranges of configuration",
        arguments: [
            ("180/60s:60", [180, 60, 60]),
            ("4000/1h:1000", [4_000, 3_600, 1_000]),
            ("0/60s:60", nil), ("1/0s:1", nil), ("1/2d:1", nil), ("1/1d:31", nil),
            ("1/60:1", nil), ("1/60s", nil), ("1/60s:", nil),
            ("1/60s:1:1", nil), ("1/1/1s:1", nil), ("", nil),
        ] as [(String, [Int]?)]
    )
    func policy(text: String, policy: [Int]?) {
        #expect(RatePolicy(argument: text).map { [$0.rate, $0.periodSeconds, $0.burst] } == policy)
    }

    @Test(
        "An address has a scheme and a host, but no user, query or fragment",
        arguments: [
            ("http://127.0.0.1:8081", "http://127.0.0.1:8081"), ("https://gw.example/", "https://gw.example"),
            ("https://gw.example/admin-proxy", "https://gw.example/admin-proxy"),
            ("http://[::1]:8081", "http://[::1]:8081"),
            ("gw.example", nil), ("ftp://gw", nil), ("http://", nil), ("http://u:p@gw", nil), ("http://gw?a=b", nil),
            ("", nil), ("http://gw/p#f", nil), ("http://gw:80811", nil),
            ("http://gw:0", nil), ("http://gw:65535", "http://gw:65535"),
        ] as [(String, String?)]
    )
    func baseURL(text: String, address: String?) {
        #expect(BaseURL(text)?.text == address)
    }

    @Test("Path segments and query parameters are percent-encoded")
    func encoding() throws {
        let url = try #require(BaseURL("http://gw/p"))
        #expect(
            url.path(["a/b", "ü~"], query: [(name: "x", value: "a&b=c +%"), (name: "y", value: "")])
                == "/p/a%2Fb/%C3%BC~?x=a%26b%3Dc%20%2B%25&y="
        )
        #expect(url.path([]) == "/p")
        #expect(try #require(BaseURL("http://gw/")).path([]) == "/")
    }
}
