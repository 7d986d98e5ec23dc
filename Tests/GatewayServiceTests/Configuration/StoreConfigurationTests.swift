import Testing

@testable import GatewayService

struct StoreConfigurationTests {
    @Test(
        "A store's path is below the data directory unless absolute",
        arguments: [
            ("sqlite:gateway.sqlite", "/data", "/data/gateway.sqlite"),
            ("sqlite:a/b.sqlite", "/data/", "/data/a/b.sqlite"),
            ("sqlite:/srv/g.sqlite", "/data", "/srv/g.sqlite"),
            ("sqlite:g", "./var/dev", "./var/dev/g"),
        ]
    )
    func databasePath(url: String, dataDir: String, path: String) {
        #expect(StoreConfiguration(url: url).databasePath(dataDir: dataDir) == path)
    }
}
