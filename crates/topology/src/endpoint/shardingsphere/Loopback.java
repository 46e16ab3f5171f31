import io.netty.bootstrap.ServerBootstrap;
import java.lang.reflect.Method;
import org.apache.shardingsphere.proxy.config.ProxyConfigurationLoader;
import org.apache.shardingsphere.proxy.frontend.ShardingSphereProxy;
import org.apache.shardingsphere.proxy.initializer.BootstrapInitializer;

/**
 * Starts ShardingSphere-Proxy 5.1.0 as its own Bootstrap does, except for the address: that one listens on all
 * addresses of the machine and has no option for it.
 */
public final class Loopback {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        String configuration = arguments[1];
        new BootstrapInitializer().init(ProxyConfigurationLoader.load(configuration), port);
        ShardingSphereProxy proxy = new ShardingSphereProxy();
        of("createEventLoopGroup").invoke(proxy);
        ServerBootstrap server = new ServerBootstrap();
        of("initServerBootstrap", ServerBootstrap.class).invoke(proxy, server);
        server.bind("127.0.0.1", port).sync().channel().closeFuture().sync();
        // The threads of its pools would keep the process alive.
        System.exit(1);
    }

    private static Method of(String name, Class<?>... parameters) throws Exception {
        Method method = ShardingSphereProxy.class.getDeclaredMethod(name, parameters);
        method.setAccessible(true);
        return method;
    }
}
