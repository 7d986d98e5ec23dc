import FCMModel
import Testing

/// An answer on the wire, whom the call was for, and what it means.
struct WireReading: Sendable, CustomTestStringConvertible {
    var name: String
    var wire: String
    var target = Target.token("a")
    var result: SendResult

    var testDescription: String { self.name }
}

extension WireReading {
    /// An answer with a length and at most one more field, whose status is its code unless that is told.
    private init(
        _ name: String,
        _ status: String,
        _ body: String = "",
        field: String? = nil,
        to target: Target = .token("a"),
        is result: SendResult,
        retryAfter: Int? = nil,
        code: String? = nil
    ) {
        self.name = name
        self.wire = field.map { WireAnswer.text(status, body, $0) } ?? WireAnswer.text(status, body)
        self.target = target
        let code = code ?? String(status.prefix(3))
        self.result =
            switch result.answer {
            case .recipients(let outcomes): SendResult(outcomes, retryAfter: retryAfter, upstreamCode: code)
            case .refused(let refusal): SendResult(refused: refusal.code, retryAfter: retryAfter, upstreamCode: code)
            case .group: SendResult(result.answer, upstreamCode: code)
            }
    }

    /// A server that is busy for a time, and what that means in seconds.
    private init(delay: String, _ retryAfter: Int?) {
        self.init(
            "503 with the delay \(delay)",
            "503 Service Unavailable",
            field: "Retry-After: \(delay)",
            is: .failing(.upstreamUnavailable),
            retryAfter: retryAfter
        )
    }

    /// An answer that the client does not get through.
    private init(_ name: String, unreadable wire: String, code: String) {
        self.init(
            name: name,
            wire: wire,
            result: SendResult(refused: .upstreamProtocol, upstreamCode: code)
        )
    }

    private static func accepted(_ id: String, replacement: String? = nil) -> SendResult {
        SendResult([.accepted(Acceptance(messageID: id, replacementToken: replacement))], upstreamCode: "200")
    }

    private static func failed(_ error: String) -> String {
        #"{"multicast_id":1,"success":0,"failure":1,"results":[{"error":"\#(error)"}]}"#
    }

    /// Every kind of answer that a legacy upstream gives.
    static let all: [WireReading] = [
        WireReading(
            "several results in order",
            "200 OK",
            """
            {"multicast_id":1,"success":2,"failure":2,"canonical_ids":1,"results":[{"message_id":"0:1"},
            {"error":"NotRegistered"},{"message_id":"0:2","registration_id":"new"},{"error":"Unavailable"}]}
            """,
            field: "Retry-After: 30",
            to: .tokens(["a", "b", "c", "d"]),
            is: SendResult(
                .recipients([
                    .accepted(Acceptance(messageID: "0:1")), .rejected(.unregistered),
                    .accepted(Acceptance(messageID: "0:2", replacementToken: "new")), .rejected(.upstreamUnavailable),
                ])
            ),
            retryAfter: 30,
            code: "NotRegistered"
        ),
        WireReading(
            "200 with an error",
            "200 OK",
            Self.failed("MismatchSenderId"),
            is: SendResult(.recipients([.rejected(.senderMismatch)])),
            code: "MismatchSenderId"
        ),
        WireReading(
            "DeprecatedApi",
            "200 OK",
            Self.failed("DeprecatedApi"),
            is: SendResult(.recipients([.rejected(.upstreamProtocol)]))
        ),
        WireReading(
            "too few results",
            "200 OK",
            #"{"multicast_id":1,"success":1,"failure":0,"results":[{"message_id":"0:1"}]}"#,
            to: .tokens(["a", "b"]),
            is: .failing(.upstreamProtocol)
        ),
        WireReading(
            "group counts",
            "200 OK",
            #"{"success":1,"failure":2,"failed_registration_ids":["x","y"]}"#,
            to: .notificationKey("k"),
            is: SendResult(.group(GroupOutcome(success: 1, failure: 2, failedTokens: ["x", "y"])))
        ),
        WireReading(
            name: "chunked",
            wire: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "10\r\n{\"multicast_id\":\r\n2f\r\n1,\"results\":[{\"message_id\":\"0:1\"}],\"success\":1}\r\n0\r\n\r\n",
            result: Self.accepted("0:1")
        ),
        WireReading(
            "plain text success",
            "200 OK",
            "id=0:9\nregistration_id=new",
            field: "Content-Type: text/plain",
            is: Self.accepted("0:9", replacement: "new")
        ),
        WireReading(
            "plain text error",
            "200 OK",
            "Error=InvalidRegistration",
            field: "Content-Type: text/plain",
            is: .failing(.invalidToken),
            code: "InvalidRegistration"
        ),
        WireReading(
            "400 as text",
            "400 Bad Request",
            "Field \"data\" must be a JSON array: x",
            field: "Content-Type: text/plain",
            is: .failing(.invalidField)
        ),
        WireReading(
            "400 for the body",
            "400 Bad Request",
            "JSON_PARSING_ERROR: Unexpected character",
            field: "Content-Type: text/plain",
            is: .failing(.malformedJSON)
        ),
        WireReading(
            "401",
            "401 Unauthorized",
            "<HTML>Unauthorized</HTML>",
            field: "Content-Type: text/html",
            is: .failing(.upstreamCredentials)
        ),
        WireReading("403", "403 Forbidden", is: .failing(.upstreamCredentials)),
        WireReading(
            "a delay beside an error that no waiting mends",
            "401 Unauthorized",
            field: "Retry-After: 60",
            is: .failing(.upstreamCredentials)
        ),
        WireReading(
            "a switched-off endpoint's 404",
            "404 Not Found",
            "<html><title>Error 404 (Not Found)!!1</title></html>",
            field: "Content-Type: text/html",
            to: .tokens(["a", "b"]),
            is: .failing(.upstreamProtocol)
        ),
        WireReading("410", "410 Gone", "NotRegistered", is: .failing(.upstreamProtocol)),
        WireReading("DeprecatedApi as text", "404 Not Found", "Error=DeprecatedApi", is: .failing(.upstreamProtocol)),
        WireReading(
            "a redirect, which is not followed",
            "302 Found",
            field: "Location: http://127.0.0.1:1/",
            is: .failing(.upstreamProtocol)
        ),
        WireReading(
            "429",
            "429 Too Many Requests",
            field: "Retry-After: 60",
            is: .failing(.upstreamUnavailable),
            retryAfter: 60
        ),
        WireReading("429 without a delay", "429 Too Many Requests", is: .failing(.upstreamUnavailable), retryAfter: 60),
        WireReading("500", "500 Internal Server Error", "oops", is: .failing(.upstreamInternal)),
        WireReading("a proxy's 502", "502 Bad Gateway", is: .failing(.upstreamUnavailable)),
        WireReading("a proxy's 504", "504 Gateway Timeout", is: .failing(.upstreamUnavailable)),
        WireReading("503", "503 Service Unavailable", is: .failing(.upstreamUnavailable)),
        WireReading(delay: "120", 120),
        WireReading(delay: "Sun, 01 Mar 2026 12:01:30 GMT", 90),
        WireReading(delay: "Sun, 01 Mar 2026 11:00:00 GMT", 0),
        WireReading(delay: "soon", nil),
        WireReading(
            "a body that is nothing we know",
            "200 OK",
            "<html>welcome</html>",
            is: .failing(.upstreamProtocol)
        ),
        WireReading("an empty body", "200 OK", is: .failing(.upstreamProtocol)),
        WireReading("something that is not HTTP", unreadable: "SSH-2.0-OpenSSH_9.9\r\n\r\n", code: "invalidResponse"),
        WireReading(
            "a length that is none",
            unreadable: "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
            code: "invalidResponse"
        ),
        WireReading(
            "a gibibyte promised",
            unreadable: "HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n{",
            code: "responseTooLarge"
        ),
    ]
}

/// Answers as they come off the wire.
enum WireAnswer {
    /// One message accepted.
    static let accepted = text(
        "200 OK",
        #"{"multicast_id":1,"success":1,"failure":0,"canonical_ids":0,"results":[{"message_id":"0:1"}]}"#
    )

    /// An answer with a length and these fields.
    static func text(_ status: String, _ body: String, _ fields: String...) -> String {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + fields
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
    }
}

extension SendResult {
    fileprivate static func failing(_ code: OutcomeCode) -> SendResult { SendResult(refused: code, upstreamCode: "") }
}
