import FCMModel
import GatewayTestKit
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct DescriptionRoutesTests {
    /// One of the two listeners.
    enum Listener: CaseIterable {
        case data
        case admin

        var file: String {
            switch self {
            case .data: "gateway.yaml"
            case .admin: "admin.yaml"
            }
        }

        func ask(
            _ gateway: TestGateway,
            _ method: HTTPRequest.Method = .get,
            _ path: String = "/openapi.yaml",
            headers: [String: String] = [:]
        ) async -> Answer {
            switch self {
            case .data: await gateway.data(method, path, key: nil, headers: headers)
            case .admin: await gateway.admin(method, path, token: nil, headers: headers)
            }
        }
    }

    @Test("Each listener serves its own description, byte for byte and without a key", arguments: Listener.allCases)
    func bytes(listener: Listener) async throws {
        try await TestGateway.run { gateway, _ in
            let answer = await listener.ask(gateway)
            #expect(answer.status == 200)
            #expect(answer.header("Content-Type") == "application/yaml")
            #expect(answer.header("Cache-Control") == "no-cache")
            #expect(answer.header("X-Request-ID")?.isUUIDv7 == true)
            // `==` treats canonically equivalent strings as equal.
            let bytes = Array(try OpenAPIDocument(listener.file).bytes)
            #expect(Array(answer.body.utf8) == bytes)
            #expect(await listener.ask(gateway, .head).status == 200)
        }
    }

    @Test("A caller with the current ETag gets 304 without the description", arguments: Listener.allCases)
    func revalidation(listener: Listener) async throws {
        try await TestGateway.run { gateway, _ in
            let tag = try #require(await listener.ask(gateway).header("ETag"))
            #expect(tag.wholeMatch(of: /"[0-9a-f]+-[0-9a-f]+"/) != nil)
            for known in [tag, "W/\(tag)", "*", "\"other\", \(tag)", "\"other\",\t\(tag) "] {
                let answer = await listener.ask(gateway, headers: ["If-None-Match": known])
                #expect(answer.status == 304, "\(known)")
                #expect(answer.body.isEmpty)
                #expect(answer.header("ETag") == tag)
                #expect(answer.header("Content-Type") == nil)
            }
            for unknown in ["\"other\"", String(tag.dropLast()), "\(tag)x", "W/", ",", "**"] {
                #expect(await listener.ask(gateway, headers: ["If-None-Match": unknown]).status == 200, "\(unknown)")
            }
        }
    }

    @Test("The two descriptions have different tags")
    func tags() {
        #expect(EmbeddedFile.gatewayDescription.entityTag != EmbeddedFile.adminDescription.entityTag)
    }

    @Test(
        "Each listener's guide lists its routes, and a path of the other listener is refused with a hint",
        arguments: Listener.allCases
    )
    func guide(listener: Listener) async throws {
        try await TestGateway.run { gateway, _ in
            let page = await listener.ask(gateway, .get, "/")
            #expect(page.status == 200)
            #expect(page.header("Content-Type") == "text/plain; charset=utf-8")
            let (own, other, name) =
                switch listener {
                case .data: (gateway.dataListener, gateway.adminListener, "the admin listener (admin.port)")
                case .admin: (gateway.adminListener, gateway.dataListener, "the data listener (http.port)")
                }
            let templates = own.routes.rows.map(\.route.template)
            for template in templates where template != "/" {
                let segment = template.split(separator: "/").first ?? ""
                #expect(page.body.contains("/\(segment)"), "\(template)")
            }
            for template in other.routes.rows.map(\.route.template) where !templates.contains(template) {
                let answer = await listener.ask(gateway, .get, EveryRouteTests.path(template))
                try answer.expectProblem(404, "not_found")
                #expect(try answer.problem()["detail"]?.text?.contains("\(name) has this path") == true, "\(template)")
            }
        }
    }

    @Test("The type of a problem is the path of a page about its code", arguments: Listener.allCases)
    func problems(listener: Listener) async throws {
        try await TestGateway.run { gateway, _ in
            for code in OutcomeCode.allCases {
                let type = try #require(Answer(Refusal(code).response).problem()["type"]?.text)
                let page = await listener.ask(gateway, .get, type)
                #expect(page.status == 200)
                #expect(page.body.hasPrefix("\(code.rawValue): \(code.title).\n\(code.explanation).\n"), "\(code)")
            }
            let page = await listener.ask(gateway, .get, "/problems/unregistered")
            #expect(
                page.body == """
                    unregistered: The device is no longer registered.
                    The app was removed from the device or got a new token; delete this one.

                    status: 410
                    retryable: false
                    action: delete_token

                    """
            )
            let none = await listener.ask(gateway, .get, "/problems/typo")
            try none.expectProblem(404, "not_found")
        }
    }
}
