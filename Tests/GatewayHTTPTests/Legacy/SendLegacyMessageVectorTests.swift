import GatewayCore
import GatewayTestKit
import Testing

@testable import GatewayHTTP

struct SendLegacyMessageVectorTests {
    @Test("What decides beside the body is answered over a socket as the vectors have it")
    func routes() async throws {
        let vectors = try LegacyVector.routeLevel() + LegacyVector.forms().filter(\.isRouteLevel)
        #expect(
            Set(["VAL-153", "VAL-154", "VAL-155", "VAL-156", "VAL-159", "PLT-044"]).isSubset(of: vectors.map(\.id))
        )
        try await TestGateway.run { gateway, key in
            try await LiveListener.run(gateway) { listener in
                for vector in vectors {
                    var headers = vector.headers
                    headers["Authorization"] = try Self.authorization(vector.auth, key: key)
                    let answer = try await listener.ask(vector.method, "/fcm/send", headers: headers, body: vector.body)
                    switch vector.expectation["outcome"]?.text {
                    case "accepted":
                        #expect(answer.status == 200, "\(vector.id)")
                        let json = try JSON(parsing: answer.body)
                        #expect(json["success"] == vector.expectation["recipients"], "\(vector.id)")
                    case "rejected":
                        #expect(answer.status == vector.expectation["status"]?.int, "\(vector.id)")
                        if let body = vector.expectation["body"] {
                            if let text = body.text {
                                #expect(answer.body == text, "\(vector.id)")
                            } else {
                                #expect(try JSON(parsing: answer.body).without("reason") == body, "\(vector.id)")
                            }
                        }
                    default:
                        Issue.record("\(vector.id) has an unknown outcome")
                    }
                    #expect(answer.fields["x-request-id"]?.isEmpty == false, "\(vector.id)")
                }
            }
        }
    }

    @Test("Forms are answered over a socket as the vectors have it")
    func forms() async throws {
        let vectors = try LegacyVector.forms().filter { !$0.isRouteLevel }
        #expect(vectors.count == 43)
        try await TestGateway.run { gateway, key in
            try await LiveListener.run(gateway) { listener in
                for vector in vectors {
                    var headers = vector.headers
                    headers["Authorization"] = "key=\(key)"
                    let callCount = gateway.upstream.calls.count
                    let answer = try await listener.ask(vector.method, "/fcm/send", headers: headers, body: vector.body)
                    #expect(answer.fields["content-type"] == "text/plain; charset=UTF-8", "\(vector.id)")
                    if vector.expectation["outcome"]?.text == "accepted" {
                        #expect(answer.status == 200, "\(vector.id)")
                        #expect(answer.body == "id=fcm-1", "\(vector.id)")
                        #expect(gateway.upstream.calls.count == callCount + 1, "\(vector.id)")
                    } else {
                        #expect(answer.status == vector.expectation["status"]?.int, "\(vector.id)")
                        #expect(answer.body == vector.expectation["body"]?.text, "\(vector.id)")
                        #expect(gateway.upstream.calls.count == callCount, "\(vector.id)")
                    }
                }
            }
        }
    }

    private static func authorization(_ auth: String, key: String) throws -> String? {
        switch auth {
        case "valid": return "key=\(key)"
        case "none": return nil
        case "malformed": return "something"
        case "unknown_key": return "key=\(APIKey.generate().secret.revealText())"
        default:
            Issue.record("unknown credential \(auth)")
            return nil
        }
    }
}
