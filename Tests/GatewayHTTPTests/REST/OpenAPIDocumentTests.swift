import FCMModel
import GatewayCore
import HTTPTypes
import Testing

@testable import GatewayHTTP

struct OpenAPIDocumentTests {
    @Test("The data listener serves exactly the routes of its description")
    func dataRoutes() async throws {
        try await TestGateway.run { gateway, _ in
            try Self.compare(gateway.dataListener.servedRoutes, with: "gateway.yaml")
        }
    }

    @Test("The admin listener serves exactly the routes of its description")
    func adminRoutes() async throws {
        try await TestGateway.run { gateway, _ in
            // The pages are for people.
            let routes = gateway.adminListener.servedRoutes.filter { route in
                !["/console", "/docs"].contains { route.template.hasPrefix($0) }
            }
            try Self.compare(routes, with: "admin.yaml")
        }
    }

    private static func compare(_ served: [ServedRoute], with name: String) throws {
        let described = try OpenAPIDocument(name).routes
        #expect(described.count > 10)
        #expect(Set(described).count == described.count)
        #expect(Set(served).count == served.count)
        #expect(Set(served).subtracting(described).map(\.description).sorted() == [], "without a description")
        #expect(Set(described).subtracting(served).map(\.description).sorted() == [], "not served")
    }

    @Test("The data description lists exactly the existing codes, and the admin description some of them")
    func codes() throws {
        let all = OutcomeCode.allCases.map(\.rawValue).sorted()
        let gateway = try OpenAPIDocument("gateway.yaml").codes
        #expect(gateway.sorted() == all)
        let admin = try OpenAPIDocument("admin.yaml").codes
        #expect(!admin.isEmpty && Set(admin).isSubset(of: all))
        #expect(Set(admin).count == admin.count)
    }

    @Test("Every operation of the data listener names one scope, or two to begin sends; description pages name none")
    func scopes() throws {
        let known = Set(Scope.allCases.map(\.rawValue))
        for (route, scopes) in try OpenAPIDocument("gateway.yaml").scopes {
            if ["/", "/openapi.yaml", "/problems/{code}"].contains(route.template) {
                #expect(scopes == nil)
            } else {
                let scopes = try #require(scopes)
                let isOne = scopes.count == 1 && known.isSuperset(of: scopes)
                #expect(isOne || scopes == ["batches:manage", "messages:send"], "\(route): \(scopes)")
            }
        }
    }

    @Test("An admin route requires a token if and only if its description says so")
    func openRoutes() async throws {
        try await TestGateway.run { gateway, _ in
            for (route, scopes) in try OpenAPIDocument("admin.yaml").scopes {
                let method = try #require(HTTPRequest.Method(rawValue: route.method))
                let path = route.template.replacing(#/\{[a-z]+\}/#, with: "some")
                let answer = await gateway.admin(method, path, token: nil)
                #expect((answer.status == 401) == (scopes != nil), "\(route): \(answer.status)")
            }
        }
    }
}

/// A method and a path template that a listener serves, to compare with its description.
struct ServedRoute: Sendable, Hashable, CustomStringConvertible {
    var method: String
    var template: String

    var description: String { "\(self.method) \(self.template)" }
}

extension Listener {
    fileprivate var servedRoutes: [ServedRoute] {
        self.routes.rows.flatMap { row in
            row.endpoints.map { ServedRoute(method: $0.method.rawValue, template: row.route.template) }
        }
    }
}
