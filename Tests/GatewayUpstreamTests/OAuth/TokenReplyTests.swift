import FCMModel
import GatewayCore
import NIOCore
import Testing

@testable import GatewayUpstream

struct TokenReplyTests {
    private func read(
        _ status: Int,
        _ body: String,
        retryAfter: String? = nil,
        date: String? = nil
    ) -> Result<IssuedToken, TokenFailure> {
        TokenReply(status: status, retryAfter: retryAfter, date: date, body: ByteBuffer(string: body))
            .read(now: 1_800_000_000)
    }

    @Test(
        "A token is read with its lifetime, by default 300 seconds and at most a day",
        arguments: [
            (#"{"access_token":"ya29.x","expires_in":3599,"token_type":"Bearer"}"#, 3_599),
            (#"{"access_token":"ya29.x"}"#, 300),
            (#"{"access_token":"ya29.x","expires_in":9223372036854775807}"#, 86_400),
        ]
    )
    func token(body: String, life: Int) throws {
        let token = try self.read(200, body).get()
        #expect(token.text.revealText() == "ya29.x")
        #expect(token.lifetimeSeconds == life)
        #expect(!"\(token)".contains("ya29"))
    }

    @Test(
        "A response without a valid token counts as an unreachable endpoint",
        arguments: [
            "", "<html>", "{}", #"{"access_token":""}"#, #"{"access_token":"a\r\nX: y"}"#, #"{"access_token":7}"#,
            #"{"access_token":"a","expires_in":0}"#, #"{"access_token":"a","expires_in":-1}"#,
            #"{"access_token":"a","access_token":"b"}"#,
            #"{"access_token":"\#(String(repeating: "x", count: 16_385))"}"#,
        ]
    )
    func unreadable(body: String) {
        #expect(throws: TokenFailure(.unreachable, "token_unreadable")) { try self.read(200, body).get() }
    }

    @Test(
        "Token endpoint errors map to a credential error or an unavailable upstream",
        arguments: [
            (400, #"{"error":"invalid_grant"}"#, OutcomeCode.upstreamCredentials, "invalid_grant"),
            (401, #"{"error":"unauthorized_client"}"#, .upstreamCredentials, "unauthorized_client"),
            (400, #"{"error":"ya29.something-else"}"#, .upstreamCredentials, "token_http_400"),
            (404, "<html>", .upstreamCredentials, "token_http_404"), (302, "", .upstreamCredentials, "token_http_302"),
            (429, "", .upstreamUnavailable, "token_http_429"), (408, "", .upstreamUnavailable, "token_http_408"),
            (500, #"{"error":"internal_failure"}"#, .upstreamUnavailable, "token_http_500"),
            (503, "<html>", .upstreamUnavailable, "token_http_503"),
        ]
    )
    func failures(status: Int, body: String, outcome: OutcomeCode, code: String) {
        let failure = #expect(throws: TokenFailure.self) { try self.read(status, body).get() }
        #expect(failure?.outcomeCode == outcome)
        #expect(failure?.code == code)
    }

    @Test("A failure keeps at most 200 characters of detail, the clock offset and Retry-After")
    func details() {
        let long = String(repeating: "x", count: 1_000)
        let failure = #expect(throws: TokenFailure.self) {
            try self.read(
                400,
                #"{"error":"invalid_grant","error_description":"\#(long)"}"#,
                date: "Fri, 15 Jan 2027 07:55:00 GMT"
            )
            .get()
        }
        #expect(failure?.detail?.count == 200)
        // 1,800,000,000 is 2027-01-15T08:00:00Z.
        #expect(failure?.clockOffset == 300)
        let letter = "x" + String(repeating: "\u{301}", count: 4_000)
        let endless = #expect(throws: TokenFailure.self) {
            try self.read(400, #"{"error_description":"\#(letter)"}"#, date: "Fri, 31 Dec 9999 23:59:59 GMT").get()
        }
        #expect(endless?.detail?.unicodeScalars.count == 200)
        #expect(endless?.clockOffset == 1_800_000_000 - 253_402_300_799)
        let busy = #expect(throws: TokenFailure.self) { try self.read(503, "", retryAfter: "7").get() }
        #expect(busy?.retryAfter == 7)
    }
}
