import Testing

@testable import FCMEmulator

@Suite("V1Endpoint")
struct V1EndpointTests {
    @Test(
        "The project is read from the path",
        arguments: [
            ("/v1/projects/demo/messages:send", "demo"), ("/v1/projects/123/messages:send", "123"),
            ("/v1/projects//messages:send", nil), ("/v1/projects/a/b/messages:send", nil),
            ("/v1/projects/demo/messages", nil), ("/v1/projects/messages:send", nil), ("/fcm/send", nil),
        ] as [(String, String?)]
    )
    func project(path: String, expected: String?) {
        #expect(V1Endpoint.project(in: path) == expected)
    }

    private static let sending: Set<String> = ["https://www.googleapis.com/auth/firebase.messaging"]

    private static func access(with token: String) -> AccessTokens.Access {
        switch token {
        case "good": .granted(AccessGrant(email: "e", projectID: "demo", scopes: Self.sending))
        case "foreign": .granted(AccessGrant(email: "e", projectID: "other", scopes: Self.sending))
        case "narrow": .granted(AccessGrant(email: "e", projectID: "demo", scopes: ["https://x/auth/storage"]))
        case "old": .expired
        default: .unknown
        }
    }

    @Test(
        "Credentials, project and content type are checked",
        arguments: [
            ("Bearer good", "demo", "application/json", 200, nil),
            (nil, "demo", "application/json", 401, "CREDENTIALS_MISSING"),
            ("key=AAAA", "demo", "application/json", 401, "ACCESS_TOKEN_TYPE_UNSUPPORTED"),
            ("Bearer nobody", "demo", "application/json", 401, "ACCESS_TOKEN_TYPE_UNSUPPORTED"),
            ("Bearer old", "demo", "application/json", 401, "ACCESS_TOKEN_EXPIRED"),
            ("Bearer narrow", "demo", "application/json", 403, "ACCESS_TOKEN_SCOPE_INSUFFICIENT"),
            ("Bearer foreign", "demo", "application/json", 403, "IAM_PERMISSION_DENIED"),
            ("Bearer good", "nowhere", "application/json", 404, "Requested entity was not found."),
            ("Bearer good", "demo", "text/plain", 400, "The content type is not application/json."),
        ] as [(String?, String, String, Int, String?)]
    )
    func credentials(authorization: String?, project: String, type: String, status: Int, text: String?) {
        let endpoint = V1Endpoint(project: project, access: Self.access(with:)) { $0 == "demo" }
        let request = ReceivedRequest(
            "/v1/projects/\(project)/messages:send",
            headers: ["content-type": type, "authorization": authorization],
            body: Array(#"{"message":{"token":"t"}}"#.utf8)
        )
        do {
            let message = try endpoint.message(in: request)
            #expect(status == 200)
            #expect(message.target == .device("t"))
        } catch {
            let answer = (error as? any RequestRefusal)?.answer
            #expect(answer?.status == status)
            #expect(answer?.body.contains(text ?? "an answer") == true)
            #expect(answer?.body.contains("FcmError") == false)
        }
    }
}

@Suite("V1Duration")
struct V1DurationTests {
    @Test(
        "A duration is decimal seconds with up to nine fractional digits",
        arguments: [
            ("0s", 0, false, false), ("3600s", 3_600, false, false), ("3.5s", 3, false, true),
            ("3.000000001s", 3, false, true), ("3.0s", 3, false, false), ("-1s", 1, true, false),
            ("-0.5s", 0, true, true), ("315576000000s", 315_576_000_000, false, false),
        ] as [(String, Int64, Bool, Bool)]
    )
    func valid(text: String, seconds: Int64, isNegative: Bool, hasFraction: Bool) throws {
        let duration = try #require(V1Duration(text))
        #expect(duration.seconds == seconds)
        #expect(duration.isNegative == isNegative)
        #expect(duration.hasFraction == hasFraction)
    }

    @Test(
        "Any other text is not a duration",
        arguments: [
            "", "s", "60", "60 s", "+1s", "1e3s", ".5s", "5.s", "1.0000000001s", "1m", "--1s", "1.2.3s",
            "315576000001s",
            "99999999999999999999s", "١s",
        ]
    )
    func invalid(text: String) {
        #expect(V1Duration(text) == nil)
    }
}
