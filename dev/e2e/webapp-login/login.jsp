<%-- Fills itself in and is sent for a browser that comes with `#robot`, as that of a test does. --%>
<%@ page contentType="text/html; charset=UTF-8" %>
<!doctype html><title>login</title>
<form method="post" action="j_security_check">
<input name="j_username"><input name="j_password" type="password"><button>log in</button>
</form>
<script>
if (location.hash === "#robot") {
  document.forms[0].j_username.value = "ann";
  document.forms[0].j_password.value = "a password of the tests";
  document.forms[0].submit();
}
</script>
