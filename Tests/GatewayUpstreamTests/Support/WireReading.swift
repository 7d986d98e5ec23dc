import FCMModel
import Testing

/// An answer on the wire, whom the call was for, and what it means.
struct WireReading: Sendable, CustomTestStringConvertible {
    var name: String
    var wire: String
    var target = Target.token("a")
    var result: UpstreamResult

    var testDescription: String { self.name }
}

extension WireReading {
    /// Every kind of answer that a legacy upstream gives.
    static let all: [WireReading] = [
        WireReading(
            name: "several results in order",
            wire: WireAnswer.text(
                "200 OK",
                """
                {"multicast_id":1,"success":2,"failure":2,"canonical_ids":1,"results":[{"message_id":"0:1"},
                {"error":"NotRegistered"},{"message_id":"0:2","registration_id":"new"},{"error":"Unavailable"}]}
                """,
                "Retry-After: 30"
            ),
            target: .tokens(["a", "b", "c", "d"]),
            result: UpstreamResult(
                answer: .recipients([
                    .accepted(Acceptance(messageID: "0:1")), .rejected(.unregistered),
                    .accepted(Acceptance(messageID: "0:2", replacementToken: "new")), .rejected(.upstreamUnavailable),
                ]),
                retryAfter: 30,
                upstreamCode: "NotRegistered"
            )
        ),
        WireReading(
            name: "200 with an error",
            wire: WireAnswer.text(
                "200 OK",
                #"{"multicast_id":1,"success":0,"failure":1,"results":[{"error":"MismatchSenderId"}]}"#
            ),
            result: UpstreamResult(answer: .recipients([.rejected(.senderMismatch)]), upstreamCode: "MismatchSenderId")
        ),
        WireReading(
            name: "too few results",
            wire: WireAnswer.text(
                "200 OK",
                #"{"multicast_id":1,"success":1,"failure":0,"results":[{"message_id":"0:1"}]}"#
            ),
            target: .tokens(["a", "b"]),
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "200")
        ),
        WireReading(
            name: "group counts",
            wire: WireAnswer.text("200 OK", #"{"success":1,"failure":2,"failed_registration_ids":["x","y"]}"#),
            target: .notificationKey("k"),
            result: UpstreamResult(
                answer: .group(GroupOutcome(success: 1, failure: 2, failedTokens: ["x", "y"])),
                upstreamCode: "200"
            )
        ),
        WireReading(
            name: "chunked",
            wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "10\r\n{\"multicast_id\":\r\n2f\r\n1,\"results\":[{\"message_id\":\"0:1\"}],\"success\":1}\r\n0\r\n\r\n",
            result: UpstreamResult(
                answer: .recipients([.accepted(Acceptance(messageID: "0:1"))]),
                upstreamCode: "200"
            )
        ),
        WireReading(
            name: "plain text success",
            wire: WireAnswer.text("200 OK", "id=0:9\nregistration_id=new", "Content-Type: text/plain"),
            result: UpstreamResult(
                answer: .recipients([.accepted(Acceptance(messageID: "0:9", replacementToken: "new"))]),
                upstreamCode: "200"
            )
        ),
        WireReading(
            name: "plain text error",
            wire: WireAnswer.text("200 OK", "Error=InvalidRegistration", "Content-Type: text/plain"),
            result: UpstreamResult(answer: .failed(.invalidToken), upstreamCode: "InvalidRegistration")
        ),
        WireReading(
            name: "400 as text",
            wire: WireAnswer.text(
                "400 Bad Request",
                "Field \"data\" must be a JSON array: x",
                "Content-Type: text/plain"
            ),
            result: UpstreamResult(answer: .failed(.invalidField), upstreamCode: "400")
        ),
        WireReading(
            name: "400 for the body",
            wire: WireAnswer.text(
                "400 Bad Request",
                "JSON_PARSING_ERROR: Unexpected character",
                "Content-Type: text/plain"
            ),
            result: UpstreamResult(answer: .failed(.malformedJSON), upstreamCode: "400")
        ),
        WireReading(
            name: "401",
            wire: WireAnswer.text("401 Unauthorized", "<HTML>Unauthorized</HTML>", "Content-Type: text/html"),
            result: UpstreamResult(answer: .failed(.upstreamCredentials), upstreamCode: "401")
        ),
        WireReading(
            name: "403",
            wire: WireAnswer.text("403 Forbidden", ""),
            result: UpstreamResult(answer: .failed(.upstreamCredentials), upstreamCode: "403")
        ),
        WireReading(
            name: "a switched-off endpoint's 404",
            wire: WireAnswer.text(
                "404 Not Found",
                "<html><title>Error 404 (Not Found)!!1</title></html>",
                "Content-Type: text/html"
            ),
            target: .tokens(["a", "b"]),
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "404")
        ),
        WireReading(
            name: "410",
            wire: WireAnswer.text("410 Gone", "NotRegistered"),
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "410")
        ),
        WireReading(
            name: "DeprecatedApi",
            wire: WireAnswer.text(
                "200 OK",
                #"{"multicast_id":1,"success":0,"failure":1,"results":[{"error":"DeprecatedApi"}]}"#
            ),
            result: UpstreamResult(answer: .recipients([.rejected(.upstreamProtocol)]), upstreamCode: "200")
        ),
        WireReading(
            name: "DeprecatedApi as text",
            wire: WireAnswer.text("404 Not Found", "Error=DeprecatedApi"),
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "404")
        ),
        WireReading(
            name: "a redirect, which is not followed",
            wire: WireAnswer.text("302 Found", "", "Location: http://127.0.0.1:1/"),
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "302")
        ),
        WireReading(
            name: "429",
            wire: WireAnswer.text("429 Too Many Requests", "", "Retry-After: 60"),
            result: UpstreamResult(answer: .failed(.upstreamUnavailable), retryAfter: 60, upstreamCode: "429")
        ),
        WireReading(
            name: "500",
            wire: WireAnswer.text("500 Internal Server Error", "oops"),
            result: UpstreamResult(answer: .failed(.upstreamInternal), upstreamCode: "500")
        ),
        WireReading(
            name: "503 with seconds",
            wire: WireAnswer.text("503 Service Unavailable", "", "Retry-After: 120"),
            result: UpstreamResult(answer: .failed(.upstreamUnavailable), retryAfter: 120, upstreamCode: "503")
        ),
        WireReading(
            name: "503 with a date",
            wire: WireAnswer.text("503 Service Unavailable", "", "Retry-After: Sun, 01 Mar 2026 12:01:30 GMT"),
            result: UpstreamResult(answer: .failed(.upstreamUnavailable), retryAfter: 90, upstreamCode: "503")
        ),
        WireReading(
            name: "503 with a date in the past",
            wire: WireAnswer.text("503 Service Unavailable", "", "Retry-After: Sun, 01 Mar 2026 11:00:00 GMT"),
            result: UpstreamResult(answer: .failed(.upstreamUnavailable), retryAfter: 0, upstreamCode: "503")
        ),
        WireReading(
            name: "503 with a delay that is none",
            wire: WireAnswer.text("503 Service Unavailable", "", "Retry-After: soon"),
            result: UpstreamResult(answer: .failed(.upstreamUnavailable), upstreamCode: "503")
        ),
        WireReading(
            name: "a delay beside an error that no waiting mends",
            wire: WireAnswer.text("401 Unauthorized", "", "Retry-After: 60"),
            result: UpstreamResult(answer: .failed(.upstreamCredentials), upstreamCode: "401")
        ),
        WireReading(
            name: "a body that is nothing we know",
            wire: WireAnswer.text("200 OK", "<html>welcome</html>"),
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "200")
        ),
        WireReading(
            name: "an empty body",
            wire: WireAnswer.text("200 OK", ""),
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "200")
        ),
        WireReading(
            name: "something that is not HTTP",
            wire: "SSH-2.0-OpenSSH_9.9\r\n\r\n",
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "invalidResponse")
        ),
        WireReading(
            name: "a length that is none",
            wire: "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "invalidResponse")
        ),
        WireReading(
            name: "a gibibyte promised",
            wire: "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n{",
            result: UpstreamResult(answer: .failed(.upstreamProtocol), upstreamCode: "responseTooLarge")
        ),
    ]
}
