import HTTPTypes
import Hummingbird

/// Shows a listener's own description, to whoever can reach the listener.
struct DescriptionController {
    let description: APIDescription

    var endpoints: RouteCollection<GatewayRequestContext> {
        let routes = RouteCollection(context: GatewayRequestContext.self)
        // The server leaves the body of an answer to HEAD out.
        routes.get("openapi.yaml") { request, _ in self.response(to: request) }
        routes.head("openapi.yaml") { request, _ in self.response(to: request) }
        return routes
    }

    private func response(to request: Request) -> Response {
        // Another version of the gateway has another description at the same address.
        let validators: HTTPFields = [.eTag: self.description.entityTag, .cacheControl: "no-cache"]
        if let known = request.headers[.ifNoneMatch], self.description.isNamed(in: known) {
            return Response(status: .notModified, headers: validators)
        }
        var response = Response(
            status: .ok,
            headers: validators,
            body: ResponseBody(byteBuffer: self.description.body)
        )
        // The media type of RFC 9512.
        response.headers[.contentType] = "application/yaml"
        return response
    }
}
