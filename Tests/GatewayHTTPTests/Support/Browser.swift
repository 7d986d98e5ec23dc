import FCMModel
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

/// A browser without a window: it keeps cookies, and fills forms with their tokens.
final class Browser {
    private let gateway: TestGateway
    var isTLS = true
    var address = "192.0.2.1"
    private(set) var cookies: [String: String] = [:]
    /// The form token of the last page that had one.
    var formToken = ""

    init(_ gateway: TestGateway) { self.gateway = gateway }

    func logIn(_ token: String = TestGateway.adminToken) async throws {
        #expect(await self.ask(.get, "/console/log-in").status == 200)
        let answer = await self.ask(.post, "/console/log-in", ["token": token])
        #expect(answer.status == 303 && answer.header("Location") == "/console")
        #expect(await self.ask(.get, "/console").status == 200)
    }

    /// Asks for a page, or sends a form with the token of the last page.
    func ask(_ method: HTTPRequest.Method, _ path: String, _ fields: [String: String] = [:]) async -> Answer {
        var body = ""
        if method == .post {
            body = fields.merging(["form_token": self.formToken]) { own, _ in own }
                .map { "\($0)=\(PercentEncoding.encoded($1))" }.joined(separator: "&")
        }
        let answer = await TestGateway.ask(
            AdminResponder(self.gateway.adminListener),
            method,
            path,
            bearer: nil,
            body: body,
            headers: [
                "Content-Type": method == .post ? "application/x-www-form-urlencoded" : "",
                "Cookie": self.cookies.map { "\($0)=\($1)" }.joined(separator: "; "),
            ],
            isTLS: self.isTLS,
            remoteAddress: self.address
        )
        for field in answer.headers where field.name == .setCookie {
            let pair = field.value.prefix { $0 != ";" }.split(separator: "=", maxSplits: 1)
            self.cookies[String(pair[0])] = pair.count == 2 ? String(pair[1]) : nil
        }
        if let start = answer.body.firstRange(of: "name=\"form_token\" value=\"")?.upperBound {
            self.formToken = String(answer.body[start...].prefix { $0 != "\"" })
        }
        return answer
    }
}
